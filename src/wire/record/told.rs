//! Events as they were told, and what beside the snapshot a picture is made of: names for keys, and the rights of the role.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::cell::{Cell, Column, codes, column, columns, lists, rows};
use super::strings::{Decoded, Strings};
use crate::model::backend::BackendId;
use crate::model::event::{self, Draft, Event, Kind, Length};
use crate::model::expected::ExpectedBlocker;
use crate::model::finding::{Severity, Subject};
use crate::model::id_generator::GeneratorId;
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::{Layer, LockNames, Named};
use crate::model::plan::Rights;
use crate::model::snapshot::Names;
use crate::model::systems::TextId;
use crate::model::task::TaskId;
use crate::model::thresholds::Thresholds;
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;
use crate::model::{Text, Timestamp};
use crate::text::{one_line, one_line_prefix};

codes! {
    Kind, else Kind::Server; {
        1 Kind::WaitBegun => Self::WaitBegun,
        2 Kind::WaitEnded => Self::WaitEnded,
        3 Kind::RootBegun => Self::RootBegun,
        4 Kind::RootEnded => Self::RootEnded,
        5 Kind::CycleBegun => Self::CycleBegun,
        6 Kind::CycleEnded => Self::CycleEnded,
        7 Kind::Deadlock => Self::Deadlock,
        8 Kind::TaskStarted => Self::TaskStarted,
        9 Kind::TaskSlow => Self::TaskSlow,
        10 Kind::TaskOrphaned => Self::TaskOrphaned,
        11 Kind::TaskEnded => Self::TaskEnded,
        12 Kind::TaskRecovered => Self::TaskRecovered,
        13 Kind::TaskOverdue => Self::TaskOverdue,
        14 Kind::TaskLeaked => Self::TaskLeaked,
        15 Kind::TaskSwitched => Self::TaskSwitched,
        16 Kind::LeaseTaken => Self::LeaseTaken,
        17 Kind::LeaseExpired => Self::LeaseExpired,
        18 Kind::LeaseReleased => Self::LeaseReleased,
        19 Kind::LeaseChanged => Self::LeaseChanged,
        20 Kind::ItemFailed => Self::ItemFailed,
        21 Kind::ItemLost => Self::ItemLost,
        22 Kind::LinkLost => Self::LinkLost,
        23 Kind::LinkBack => Self::LinkBack,
        24 Kind::Server => Self::Server,
        25 Kind::SectionStale => Self::SectionStale,
        26 Kind::SectionFresh => Self::SectionFresh,
        27 Kind::ActionAsked => Self::ActionAsked,
        28 Kind::ActionResult => Self::ActionResult,
        29 Kind::Note => Self::Note,
    }
    Severity, else Severity::Info; {
        0 Severity::Info => Self::Info,
        1 Severity::Warning => Self::Warning,
        2 Severity::Critical => Self::Critical,
    }
}

columns! {
    Events of Event {
        1 number: u64,
        2 seen: Timestamp,
        3 draft: Draft,
    }
    Drafts of Draft {
        1 at: Timestamp,
        2 kind: Kind,
        3 severity: Severity,
        4 who: Text,
        5 what: Text,
        6 more: Text,
        7 subject: Option<Subject>,
        8 length: Option<Length>,
    }
    /// What an event is about, flat.
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
    /// How long it lasted, flat.
    FlatLengths of FlatLength {
        1 kind: u32,
        2 seconds: f64,
    }
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
    /// Names of advisory keys.
    KeyNames of KeyName {
        1 learned: bool,
        2 database: Option<Text>,
        3 is_pair: bool,
        4 key: i64,
        5 name: Text,
        6 origin: Text,
        7 uncertain: bool,
    }
    RelationNames of RelationName {
        1 database: u32,
        2 relation: u32,
        3 name: Text,
    }
    DatabaseNames of DatabaseName {
        1 database: u32,
        2 name: Text,
    }
}

lists! {
    EventLists of Event;
}

/// [`Subject`] with the fields of all its kinds; kind 0 is none.
pub(super) struct FlatSubject {
    kind: u32,
    pid: i32,
    start: Option<Timestamp>,
    party: Party,
    tag: LockTag,
    table: u32,
    id: i64,
    section: Option<Text>,
}

/// An event whose text is fit for a screen, whoever made the file.
pub(super) fn harmless(mut event: Event) -> Event {
    for text in [&mut event.draft.who, &mut event.draft.what, &mut event.draft.more] {
        *text = event::harmless(text);
    }
    event
}

impl Cell for Option<Subject> {
    type Column = FlatSubjects;
}

impl Column<Option<Subject>> for FlatSubjects {
    fn push(&mut self, value: &Option<Subject>, strings: &mut Strings) {
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
        let flat = match value {
            None => none,
            Some(Subject::Backend(BackendId { pid, backend_start })) => {
                FlatSubject { kind: 1, pid: *pid, start: *backend_start, ..none }
            }
            Some(Subject::Party(party)) => FlatSubject { kind: 2, party: *party, ..none },
            Some(Subject::Lock(tag)) => FlatSubject { kind: 3, tag: *tag, ..none },
            Some(Subject::Task(TaskId { table, id })) => {
                FlatSubject { kind: 4, table: *table, id: *id, ..none }
            }
            Some(Subject::Lease(TextId(id))) => FlatSubject { kind: 5, id: id.cast_signed(), ..none },
            Some(Subject::Item(ItemId { table, id })) => {
                FlatSubject { kind: 6, table: *table, id: *id, ..none }
            }
            Some(Subject::Queue) => FlatSubject { kind: 7, ..none },
            Some(Subject::Limit(TextId(id))) => FlatSubject { kind: 8, id: id.cast_signed(), ..none },
            Some(Subject::Generator(GeneratorId { table, worker })) => {
                FlatSubject { kind: 9, table: *table, id: *worker, ..none }
            }
            Some(Subject::Server) => FlatSubject { kind: 10, ..none },
            Some(Subject::Job(TextId(id))) => FlatSubject { kind: 12, id: id.cast_signed(), ..none },
            Some(Subject::JobQueue(TextId(id))) => FlatSubject { kind: 13, id: id.cast_signed(), ..none },
            Some(Subject::JobLease(TextId(id))) => FlatSubject { kind: 14, id: id.cast_signed(), ..none },
            Some(Subject::Section(name)) => FlatSubject { kind: 11, section: Some((*name).into()), ..none },
        };
        self.push(&flat, strings);
    }

    fn get(&self, at: usize, strings: &Decoded) -> Option<Subject> {
        let flat: FlatSubject = self.get(at, strings);
        let text_id = || TextId(flat.id.cast_unsigned());
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
            _ => return None,
        })
    }

    fn rows(&self) -> usize {
        Column::<FlatSubject>::rows(self)
    }
}

/// The sections that events are about.
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

/// [`Length`] and how sure it is; kind 0 is none.
pub(super) struct FlatLength {
    kind: u32,
    seconds: f64,
}

impl Cell for Option<Length> {
    type Column = FlatLengths;
}

impl Column<Option<Length>> for FlatLengths {
    fn push(&mut self, value: &Option<Length>, strings: &mut Strings) {
        let (kind, seconds) = match *value {
            None => (0, 0.0),
            Some(Length::Exactly(seconds)) => (1, seconds),
            Some(Length::AtMost(seconds)) => (2, seconds),
            Some(Length::AtLeast(seconds)) => (3, seconds),
        };
        self.push(&FlatLength { kind, seconds }, strings);
    }

    fn get(&self, at: usize, strings: &Decoded) -> Option<Length> {
        let FlatLength { kind, seconds } = self.get(at, strings);
        Some(match kind {
            1 => Length::Exactly(seconds),
            2 => Length::AtMost(seconds),
            3 => Length::AtLeast(seconds),
            _ => return None,
        })
    }

    fn rows(&self) -> usize {
        Column::<FlatLength>::rows(self)
    }
}

/// A name of an advisory key, and where it counts.
pub(super) struct KeyName {
    learned: bool,
    database: Option<Text>,
    is_pair: bool,
    key: i64,
    name: Text,
    origin: Text,
    uncertain: bool,
}

/// Names for keys, what could not be learned, and the rights of the role.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Known {
    #[prost(message, required, tag = 1)]
    keys: KeyNames,
    #[prost(message, required, tag = 2)]
    notes: <Text as Cell>::Column,
    #[prost(message, required, tag = 3)]
    rights: RightRows,
}

/// What is known beside the snapshot.
pub(super) type Beside = (Arc<LockNames>, Arc<[Text]>, Option<Arc<Rights>>);

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
            let (is_pair, key) = match *key {
                LockKey::Bigint(key) => (false, key),
                LockKey::Pair(high, low) => (true, i64::from(high) << 32 | i64::from(low.cast_unsigned())),
            };
            let Named { name, origin, uncertain } = named.clone();
            KeyName { learned, database: database.cloned(), is_pair, key, name, origin, uncertain }
        }));
    }
    keys.sort_by(|a, b| {
        let key = |name: &KeyName| (name.learned, name.is_pair, name.key);
        key(a).cmp(&key(b)).then_with(|| a.database.cmp(&b.database))
    });
    let rights: Vec<Rights> = rights.cloned().into_iter().collect();
    Known { keys: column(&keys, strings), notes: column(notes, strings), rights: column(&rights, strings) }
}

#[expect(clippy::cast_possible_truncation, reason = "two halves of 32 bits")]
pub(super) fn known(kept: &Known, strings: &Decoded) -> Beside {
    let (mut configured, mut learned) = (Layer::default(), Layer::default());
    for row in rows::<KeyName>(&kept.keys, strings) {
        let key = if row.is_pair {
            LockKey::Pair((row.key >> 32) as i32, row.key as i32)
        } else {
            LockKey::Bigint(row.key)
        };
        let layer = if row.learned { &mut learned } else { &mut configured };
        let names = match row.database {
            Some(database) => layer.databases.entry(database).or_default(),
            None => &mut layer.everywhere,
        };
        names.insert(key, Named { name: row.name, origin: row.origin, uncertain: row.uncertain });
    }
    let rights = rows::<Rights>(&kept.rights, strings).pop().map(Arc::new);
    let notes: Vec<Text> =
        rows::<Text>(&kept.notes, strings).iter().map(|note| one_line(note).into()).collect();
    (Arc::new(LockNames::restored(configured, learned)), notes.into(), rights)
}

/// A relation by name.
pub(super) struct RelationName {
    database: u32,
    relation: u32,
    name: Text,
}

/// A database by name.
pub(super) struct DatabaseName {
    database: u32,
    name: Text,
}

/// Names of relations and databases.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NameTable {
    #[prost(message, required, tag = 1)]
    relations: RelationNames,
    #[prost(message, required, tag = 2)]
    databases: DatabaseNames,
}

pub(super) fn of_names(names: &Names, strings: &mut Strings) -> NameTable {
    let relations = names.relations.iter();
    let mut relations: Vec<_> = relations
        .map(|((database, relation), name)| RelationName {
            database: *database,
            relation: *relation,
            name: Text::clone(name),
        })
        .collect();
    relations.sort_unstable_by_key(|row| (row.database, row.relation));
    let databases = names.databases.iter();
    let mut databases: Vec<_> = databases
        .map(|(database, name)| DatabaseName { database: *database, name: Text::clone(name) })
        .collect();
    databases.sort_unstable_by_key(|row| row.database);
    NameTable { relations: column(&relations, strings), databases: column(&databases, strings) }
}

pub(super) fn names(kept: &NameTable, strings: &Decoded) -> Names {
    let relations = rows::<RelationName>(&kept.relations, strings).into_iter();
    let databases = rows::<DatabaseName>(&kept.databases, strings).into_iter();
    let relations: FxHashMap<_, _> = relations.map(|row| ((row.database, row.relation), row.name)).collect();
    Names { relations, databases: databases.map(|row| (row.database, row.name)).collect() }
}

/// The rows of a column, once they are read.
pub(super) type Rows<T> = Vec<T>;

/// A limit of the findings by its name in the config, or a blocker that is expected.
#[derive(Default)]
pub(super) struct Limit {
    name: Option<Text>,
    number: f64,
    application: Option<Text>,
    user: Option<Text>,
    database: Option<Text>,
    lock: Option<Text>,
    reason: Option<Text>,
    statement: Option<Text>,
}

impl Limit {
    fn number(name: &str, number: f64) -> Self {
        Self { name: Some(name.into()), number, ..Self::default() }
    }

    /// The number of a blocker that is expected is the longest wait behind it; 0 for none.
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

/// The blockers that are expected, as rows.
pub(super) fn of_expected(expected: &[ExpectedBlocker]) -> Vec<Limit> {
    expected.iter().map(Limit::expected).collect()
}

/// No config has more of them, and no reason is longer: a file may say anything.
const EXPECTED: usize = 1000;
const REASON: usize = 4000;

/// The blockers that were expected, as many as a config may have.
pub(super) fn expected(rows: &[Limit]) -> Vec<ExpectedBlocker> {
    rows.iter().take(EXPECTED).map(Limit::blocker).collect()
}

/// The limits by name, each with where it is.
macro_rules! limits {
    ($($name:literal $field:ident,)*) => {
        /// The limits, and behind them the blockers that are expected.
        pub(super) fn of_thresholds(thresholds: &Thresholds) -> Vec<Limit> {
            let mut rows = vec![
                $(Limit::number($name, thresholds.$field),)*
                Limit::number("blocked", thresholds.blocked.into()),
                Limit::number("convoy", thresholds.convoy.into()),
                Limit::number("pile_up", thresholds.pile_up.into()),
            ];
            rows.extend(of_expected(&thresholds.expected));
            rows
        }

        /// Those that were kept; one that is not known here is left out.
        pub(super) fn thresholds(rows: &[Limit]) -> Thresholds {
            let mut thresholds = Thresholds::default();
            for row in rows {
                match row.name.as_deref() {
                    $(Some($name) => thresholds.$field = row.number,)*
                    Some("blocked") => thresholds.blocked = count(row.number),
                    Some("convoy") => thresholds.convoy = count(row.number),
                    Some("pile_up") => thresholds.pile_up = count(row.number),
                    Some(_) => {}
                    None if thresholds.expected.len() < EXPECTED => thresholds.expected.push(row.blocker()),
                    None => {}
                }
            }
            thresholds
        }
    };
}

limits! {
    "wait" wait,
    "idle_in_transaction" idle_in_transaction,
    "connections" connections,
    "idle_lock" idle_lock,
    "task_timeout" task_timeout,
    "orphan_grace" orphan_grace,
    "task_overdue" task_overdue,
    "queue_pending" queue_pending,
    "id_ahead" id_ahead,
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn count(number: f64) -> u32 {
    number as u32
}

columns! {
    /// Limits of the findings.
    LimitRows of Limit {
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
