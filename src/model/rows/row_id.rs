use crate::model::backend::BackendId;
use crate::model::finding::Subject;
use crate::model::id_generator::GeneratorId;
use crate::model::lease::LeaseId;
use crate::model::lock::{LockMode, LockTag, VirtualTransaction};
use crate::model::rate_limit::LimitId;
use crate::model::source_tables::NameHash;
use crate::model::task::TaskId;
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;

/// The identity of a row, independent of its position: the selection, the marks and the plans of actions refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowId {
    Finding(&'static str, Subject),
    Backend(BackendId),
    Prepared(VirtualTransaction),
    /// Waiters for one lock in one mode behind one party, folded into a line.
    Group(Party, LockTag, LockMode),
    /// A long chain of sessions, folded into a line, by its first session.
    Run(Party),
    Lock(LockTag, LockOwner, LockMode),
    /// A lock that sessions wait for, whichever sessions they are; for a row, its tuple lock.
    Awaited(LockTag),
    Waits(LockTag),
    /// A task; if several of its executions run, all but the newest are identified by their own id.
    Task(TaskId, Option<i64>),
    /// A lease, by where it is stored and its id there.
    Lease(LeaseId),
    /// A job of another system, by installation, part and id.
    Job(NameHash),
    Schedule(NameHash),
    /// A lease of another system, by installation and id.
    OtherLease(NameHash),
    /// A queue of another system, by installation and name.
    JobQueue(NameHash),
    /// A worker of another system, by installation and id.
    Worker(NameHash),
    Item(ItemId),
    /// The work queue as a whole: any of its items.
    Queue,
    Limit(LimitId),
    Generator(GeneratorId),
    /// An event, or this number of similar events from there on.
    Event(u64, u32),
    /// The routine of a minute, from this event on; it grows until the minute is over.
    Routine(u64),
    /// A group of root blockers on the Blame screen.
    Blamed(u64),
    Episode(u64),
}

impl RowId {
    /// The row of a subject: of a session whose start is not known, without its start. `None` if the subject has several rows,
    /// or is the whole server.
    pub fn of(subject: Subject) -> Option<Self> {
        Some(match subject {
            Subject::Backend(id) => Self::Backend(id),
            Subject::Party(Party::Backend(pid)) => Self::Backend(BackendId { pid, backend_start: None }),
            Subject::Party(Party::Prepared(xact)) => Self::Prepared(xact),
            Subject::Lock(tag) => Self::Awaited(tag),
            Subject::Task(task) => Self::Task(task, None),
            Subject::Lease(id) => Self::Lease(id),
            Subject::Item(id) => Self::Item(id),
            Subject::Job(id) => Self::Job(id),
            Subject::JobQueue(id) => Self::JobQueue(id),
            Subject::JobLease(id) => Self::OtherLease(id),
            Subject::JobSchedule(id) => Self::Schedule(id),
            Subject::Limit(id) => Self::Limit(id),
            Subject::Generator(id) => Self::Generator(id),
            Subject::Queue => Self::Queue,
            Subject::Server | Subject::Section(_) => return None,
        })
    }
}

/// The holder of a lock. The `virtualtransaction` of a row is not an identity: for a session-level lock it is the one
/// of the session's current transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockOwner {
    Backend(BackendId),
    Prepared(VirtualTransaction),
}
