//! Data besides the snapshot that the screens are made of: names of keys and objects, and the rights of the role.

use std::sync::Arc;
use std::time::Duration;

use super::adapters::{key_bits, key_of};
use super::cell::{column, rows, sorted, stored_as};
use super::columns::{codes, columns, flat_rows, parts, tuples};
use super::strings::{Decoded, Strings};
use crate::model::backend::BackendId;
use crate::model::event::{self, Event, EventBody, EventKind, Length};
use crate::model::finding::{Severity, Subject};
use crate::model::id_generator::GeneratorId;
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_name::{Layer, LockName, LockNames};
use crate::model::plan::Rights;
use crate::model::snapshot::Names;
use crate::model::source_tables::NameHash;
use crate::model::task::TaskId;
use crate::model::thresholds::{self, ExpectedBlocker, Thresholds};
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;
use crate::model::{Text, Timestamp};
use crate::order::SortExt;
use crate::text::{one_line, one_line_prefix};

columns! {
    /// The rights of the role.
    RightRows of Rights {
        1 role: Text,
        2 version_num: u32,
        3 superuser: bool,
        4 read_all_stats: bool,
        5 signal_backend: bool,
        6 signal_autovacuum: bool,
        7 member_of: Vec<Text>,
        8 superusers: Vec<Text>,
        9 partial: bool,
        10 no_inherit: bool,
    }
}

flat_rows! {
    /// A name of an advisory key, and where it counts.
    KeyNames of KeyName {
        1 learned: bool,
        2 database: Option<Text>,
        3 is_pair: bool,
        4 key: i64,
        5 name: Text,
        6 origin: Text,
        7 uncertain: bool,
    }
}

tuples! {
    /// A relation by name.
    RelationNames of ((u32, u32), Text) as ((database, relation), name) {
        1 database: u32,
        2 relation: u32,
        3 name: Text,
    }
    /// Another object by kind and name.
    ObjectNames of ((u32, u32, u32), Text) as ((database, class, object), name) {
        1 database: u32,
        2 class: u32,
        3 object: u32,
        4 name: Text,
    }
    /// A database by name.
    DatabaseNames of (u32, Text) as (database, name) { 1 database: u32, 2 name: Text, }
}

parts! {
    Known {
        1 keys: KeyName,
        2 notes: Text,
        3 rights: Rights,
    }
}

pub(super) type KnownPart = (Arc<LockNames>, Arc<[Text]>, Option<Arc<Rights>>);

pub(super) fn of_known(
    names: &LockNames,
    notes: &[Text],
    rights: Option<&Rights>,
    strings: &mut Strings,
) -> Known {
    let mut keys = Vec::new();
    for (learned, layer) in [(false, &names.configured), (true, &names.learned)] {
        let everywhere = layer.everywhere.iter().map(|named| (None, named));
        let here = layer.databases.iter();
        let here = here.flat_map(|(database, keys)| keys.iter().map(move |named| (Some(database), named)));
        keys.extend(everywhere.chain(here).map(|(database, (key, named))| {
            let (is_pair, key) = key_bits(*key);
            let LockName { name, origin, uncertain } = named.clone();
            KeyName { learned, database: database.cloned(), is_pair, key, name, origin, uncertain }
        }));
    }
    keys.order_by(|a, b| {
        let key = |name: &KeyName| (name.learned, name.is_pair, name.key);
        key(a).cmp(&key(b)).then_with(|| a.database.cmp(&b.database))
    });
    Known::of((&keys, notes, rights.map(std::slice::from_ref).unwrap_or_default()), strings)
}

pub(super) fn known(kept: &Known, strings: &Decoded) -> KnownPart {
    let (keys, notes, mut rights) = kept.rows(strings);
    let (mut configured, mut learned) = (Layer::default(), Layer::default());
    for row in keys {
        let key = key_of(row.is_pair, row.key);
        let layer = if row.learned { &mut learned } else { &mut configured };
        let names = match row.database {
            Some(database) => layer.databases.entry(database).or_default(),
            None => &mut layer.everywhere,
        };
        names.insert(key, LockName { name: row.name, origin: row.origin, uncertain: row.uncertain });
    }
    let notes = notes.iter().map(|note| one_line(note).into()).collect();
    (Arc::new(LockNames::restored(configured, learned)), notes, rights.pop().map(Arc::new))
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NameTable {
    #[prost(message, required, tag = 1)]
    relations: RelationNames,
    #[prost(message, required, tag = 2)]
    databases: DatabaseNames,
    #[prost(message, optional, tag = 3)]
    objects: Option<ObjectNames>,
}

pub(super) fn of_names(names: &Names, strings: &mut Strings) -> NameTable {
    let objects = sorted(&names.objects);
    NameTable {
        relations: column(&sorted(&names.relations), strings),
        databases: column(&sorted(&names.databases), strings),
        objects: (!objects.is_empty()).then(|| column(&objects, strings)),
    }
}

pub(super) fn names(kept: &NameTable, strings: &Decoded) -> Names {
    let objects = kept.objects.iter().flat_map(|objects| rows(objects, strings));
    Names {
        relations: rows(&kept.relations, strings).into_iter().collect(),
        databases: rows(&kept.databases, strings).into_iter().collect(),
        objects: objects.collect(),
    }
}

impl Limit {
    fn number(name: &str, number: f64) -> Self {
        Self { name: Some(name.into()), number, ..Self::default() }
    }

    /// The number of an expected blocker is the longest wait behind it, in seconds; 0 for none.
    fn expected(entry: &ExpectedBlocker) -> Self {
        let ExpectedBlocker { application, user, database, lock, statement, longest_wait, reason } =
            entry.clone();
        let number = longest_wait.map_or(0.0, |longest| longest.as_secs_f64());
        Self { name: None, number, application, user, database, lock, reason, statement }
    }

    fn blocker(&self) -> ExpectedBlocker {
        let longest = Duration::try_from_secs_f64(self.number).ok();
        ExpectedBlocker {
            application: self.application.clone(),
            user: self.user.clone(),
            database: self.database.clone(),
            lock: self.lock.clone(),
            statement: self.statement.clone(),
            longest_wait: longest.filter(|longest| !longest.is_zero()),
            reason: self.reason.as_ref().map(|reason| {
                if reason.len() > REASON { one_line_prefix(reason, REASON) } else { one_line(reason) }.into()
            }),
        }
    }
}

pub(super) fn of_expected(expected: &[ExpectedBlocker]) -> Vec<Limit> {
    expected.iter().map(Limit::expected).collect()
}

/// Maximum number of entries, and bytes of a reason. No config exceeds them, but a file can contain anything.
const EXPECTED: usize = 1000;
const REASON: usize = 4000;

pub(super) fn expected(rows: &[Limit]) -> Vec<ExpectedBlocker> {
    rows.iter().take(EXPECTED).map(Limit::blocker).collect()
}

/// The limits, and behind them the blockers that are expected.
pub(super) fn of_thresholds(thresholds: &Thresholds) -> Vec<Limit> {
    let mut kept = thresholds.clone();
    let number = |(name, limit): (&str, thresholds::Limit<'_>)| match limit {
        thresholds::Limit::Seconds(number) | thresholds::Limit::Share(number) => Limit::number(name, *number),
        thresholds::Limit::Count(number) => Limit::number(name, f64::from(*number)),
    };
    let mut rows: Vec<Limit> = kept.limits().into_iter().map(number).collect();
    rows.extend(of_expected(&thresholds.expected));
    rows
}

/// Those that were kept; one that is not known here is left out.
pub(super) fn thresholds(rows: &[Limit]) -> Thresholds {
    let blockers = rows.iter().filter(|row| row.name.is_none()).take(EXPECTED);
    let mut thresholds =
        Thresholds { expected: blockers.map(Limit::blocker).collect(), ..Thresholds::default() };
    for row in rows {
        let mut limits = thresholds.limits().into_iter();
        match limits.find(|(name, _)| row.name.as_deref() == Some(name)) {
            Some((_, thresholds::Limit::Seconds(limit) | thresholds::Limit::Share(limit))) => {
                *limit = row.number;
            }
            Some((_, thresholds::Limit::Count(limit))) => *limit = count(row.number),
            None => {}
        }
    }
    thresholds
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn count(number: f64) -> u32 {
    number as u32
}

flat_rows! {
    /// A limit of the findings by its name in the config, or a blocker that is expected.
    LimitRows of #[derive(Default)] Limit {
        1 name: Option<Text>,
        2 number: f64,
        3 application: Option<Text>,
        4 user: Option<Text>,
        5 database: Option<Text>,
        6 lock: Option<Text>,
        7 reason: Option<Text>,
        8 statement: Option<Text>,
    }
}

// Events, and what they are about.

codes! {
    EventKind, else Server; {
        1 WaitBegun, 2 WaitEnded, 3 RootBegun, 4 RootEnded, 5 CycleBegun, 6 CycleEnded, 7 Deadlock,
        8 TaskStarted, 9 TaskSlow, 10 TaskOrphaned, 11 TaskEnded, 12 TaskRecovered, 13 TaskOverdue,
        14 TaskLeaked, 15 TaskSwitched, 16 LeaseTaken, 17 LeaseExpired, 18 LeaseReleased, 19 LeaseChanged,
        20 ItemFailed, 21 ItemLost, 22 LinkLost, 23 LinkBack, 24 Server, 25 SectionStale, 26 SectionFresh,
        27 ActionAsked, 28 ActionResult, 29 Note,
    }
    Severity, else Info; {
        0 Info, 1 Warning, 2 Critical,
    }
}

columns! {
    Events of Event { 1 number: u64, 2 seen: Timestamp, 3 body: EventBody, }
    EventBodies of EventBody {
        1 at: Timestamp,
        2 kind: EventKind,
        3 severity: Severity,
        4 who: Text,
        5 what: Text,
        6 more: Text,
        7 subject: Option<Subject>,
        8 length: Option<Length>,
    }
}

flat_rows! {
    /// [`Subject`] with the fields of all its kinds; kind 0 is none.
    FlatSubjects of FlatSubject {
        1 kind: u32,
        2 pid: i32,
        3 start: Option<Timestamp>,
        4 party: Party,
        5 tag: LockTag,
        6 table: u32,
        7 id: i64,
        8 section: Option<Text>,
    }
}

tuples! {
    /// [`Length`] and how sure it is; kind 0 is none.
    FlatLengths of (u32, f64) as (kind, seconds) { 1 kind: u32, 2 seconds: f64, }
}

stored_as! {
    Option<Subject> as FlatSubject: |subject| flat_subject(subject.as_ref()), |flat| subject(&flat);
    Option<Length> as (u32, f64):
        |length| match *length {
            None => (0, 0.0),
            Some(Length::Exactly(seconds)) => (1, seconds),
            Some(Length::AtMost(seconds)) => (2, seconds),
            Some(Length::AtLeast(seconds)) => (3, seconds),
        },
        |(kind, seconds)| match kind {
            1 => Some(Length::Exactly(seconds)),
            2 => Some(Length::AtMost(seconds)),
            3 => Some(Length::AtLeast(seconds)),
            _ => None,
        };
}

/// Makes the texts of an event safe for a screen, because the file is not trusted.
pub(super) fn harmless(mut event: Event) -> Event {
    for text in [&mut event.body.who, &mut event.body.what, &mut event.body.more] {
        *text = event::harmless(text);
    }
    event
}

fn flat_subject(subject: Option<&Subject>) -> FlatSubject {
    let none = FlatSubject {
        kind: 0,
        pid: 0,
        start: None,
        party: Party::Backend(0),
        tag: LockTag::new(LockType::Other),
        table: 0,
        id: 0,
        section: None,
    };
    match subject {
        None => none,
        Some(Subject::Backend(BackendId { pid, backend_start })) => {
            FlatSubject { kind: 1, pid: *pid, start: *backend_start, ..none }
        }
        Some(Subject::Party(party)) => FlatSubject { kind: 2, party: *party, ..none },
        Some(Subject::Lock(tag)) => FlatSubject { kind: 3, tag: *tag, ..none },
        Some(Subject::Task(TaskId { table, id })) => FlatSubject { kind: 4, table: *table, id: *id, ..none },
        Some(Subject::Lease(NameHash(id))) => FlatSubject { kind: 5, id: id.cast_signed(), ..none },
        Some(Subject::Item(ItemId { table, id })) => FlatSubject { kind: 6, table: *table, id: *id, ..none },
        Some(Subject::Queue) => FlatSubject { kind: 7, ..none },
        Some(Subject::Limit(NameHash(id))) => FlatSubject { kind: 8, id: id.cast_signed(), ..none },
        Some(Subject::Generator(GeneratorId { table, worker })) => {
            FlatSubject { kind: 9, table: *table, id: *worker, ..none }
        }
        Some(Subject::Server) => FlatSubject { kind: 10, ..none },
        Some(Subject::Job(NameHash(id))) => FlatSubject { kind: 12, id: id.cast_signed(), ..none },
        Some(Subject::JobQueue(NameHash(id))) => FlatSubject { kind: 13, id: id.cast_signed(), ..none },
        Some(Subject::JobLease(NameHash(id))) => FlatSubject { kind: 14, id: id.cast_signed(), ..none },
        Some(Subject::JobSchedule(NameHash(id))) => FlatSubject { kind: 15, id: id.cast_signed(), ..none },
        Some(Subject::Section(name)) => FlatSubject { kind: 11, section: Some((*name).into()), ..none },
    }
}

fn subject(flat: &FlatSubject) -> Option<Subject> {
    let text_id = || NameHash(flat.id.cast_unsigned());
    Some(match flat.kind {
        1 => Subject::Backend(BackendId { pid: flat.pid, backend_start: flat.start }),
        2 => Subject::Party(flat.party),
        3 => Subject::Lock(flat.tag),
        4 => Subject::Task(TaskId { table: flat.table, id: flat.id }),
        5 => Subject::Lease(text_id()),
        6 => Subject::Item(ItemId { table: flat.table, id: flat.id }),
        7 => Subject::Queue,
        8 => Subject::Limit(text_id()),
        9 => Subject::Generator(GeneratorId { table: flat.table, worker: flat.id }),
        10 => Subject::Server,
        11 => Subject::Section(section(flat.section.as_deref()?)?),
        12 => Subject::Job(text_id()),
        13 => Subject::JobQueue(text_id()),
        14 => Subject::JobLease(text_id()),
        15 => Subject::JobSchedule(text_id()),
        _ => return None,
    })
}

fn section(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 11] = [
        "server",
        "backends",
        "locks",
        "prepared",
        "tasks",
        "executions",
        "leases",
        "queue",
        "rate_limits",
        "id_generators",
        "adapters",
    ];
    NAMES.into_iter().find(|known| *known == name)
}
