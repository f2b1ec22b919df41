use super::cell::stored_as;
use super::columns::{codes, columns, flat_rows, tuples};
use crate::model::backend::BackendId;
use crate::model::event::{self, Draft, Event, Kind, Length};
use crate::model::finding::{Severity, Subject};
use crate::model::id_generator::GeneratorId;
use crate::model::lock::{LockTag, LockType};
use crate::model::systems::TextId;
use crate::model::task::TaskId;
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;
use crate::model::{Text, Timestamp};

codes! {
    Kind, else Server; {
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
    Events of Event { 1 number: u64, 2 seen: Timestamp, 3 draft: Draft, }
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
    for text in [&mut event.draft.who, &mut event.draft.what, &mut event.draft.more] {
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
        Some(Subject::Lease(TextId(id))) => FlatSubject { kind: 5, id: id.cast_signed(), ..none },
        Some(Subject::Item(ItemId { table, id })) => FlatSubject { kind: 6, table: *table, id: *id, ..none },
        Some(Subject::Queue) => FlatSubject { kind: 7, ..none },
        Some(Subject::Limit(TextId(id))) => FlatSubject { kind: 8, id: id.cast_signed(), ..none },
        Some(Subject::Generator(GeneratorId { table, worker })) => {
            FlatSubject { kind: 9, table: *table, id: *worker, ..none }
        }
        Some(Subject::Server) => FlatSubject { kind: 10, ..none },
        Some(Subject::Job(TextId(id))) => FlatSubject { kind: 12, id: id.cast_signed(), ..none },
        Some(Subject::JobQueue(TextId(id))) => FlatSubject { kind: 13, id: id.cast_signed(), ..none },
        Some(Subject::JobLease(TextId(id))) => FlatSubject { kind: 14, id: id.cast_signed(), ..none },
        Some(Subject::JobSchedule(TextId(id))) => FlatSubject { kind: 15, id: id.cast_signed(), ..none },
        Some(Subject::Section(name)) => FlatSubject { kind: 11, section: Some((*name).into()), ..none },
    }
}

fn subject(flat: &FlatSubject) -> Option<Subject> {
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
