//! A row of a pane: where it is in the view, and what it is about.

use super::Pane;
use super::forest::ChainRow;
use crate::model::backend::BackendId;
use crate::model::finding::Subject;
use crate::model::id_generator::GeneratorId;
use crate::model::lease::LeaseId;
use crate::model::lock::{LockMode, LockTag, VirtualTransaction};
use crate::model::rate_limit::LimitId;
use crate::model::systems::TextId;
use crate::model::task::TaskId;
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;

/// Where a row of a pane is in the view. Of what, its pane knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row {
    /// Index in a list of the view.
    At(u32),
    /// Index of a table in the snapshot, and of the row in it.
    In(u32, u32),
    /// A line of the forest, with how far in it is.
    Chain(ChainRow),
    /// Place of an event among those that are kept, and how many from there on are one line.
    Events(u32, u32),
}

/// There is one for each of the tens of thousands of locks that a server may have.
const _: () = assert!(size_of::<Row>() == 16, "a row of a pane has 16 bytes");

impl Row {
    /// One for each row of a list, in its order.
    pub fn all(count: usize) -> Vec<Self> {
        (0..u32::try_from(count).unwrap_or(u32::MAX)).map(Self::At).collect()
    }

    /// One for each row of several tables, in their order; `counts` are their lengths.
    pub fn all_of(counts: impl Iterator<Item = usize>) -> Vec<Self> {
        let of = |(table, count): (u32, usize)| {
            (0..u32::try_from(count).unwrap_or(u32::MAX)).map(move |at| Self::In(table, at))
        };
        (0u32..).zip(counts).flat_map(of).collect()
    }

    /// The index in a list; none for a row of another kind.
    pub fn at(self) -> Option<usize> {
        match self {
            Self::At(at) => Some(at as usize),
            _ => None,
        }
    }

    /// The indexes of its table and of the row in it; none for a row of another kind.
    pub fn within(self) -> Option<(usize, usize)> {
        match self {
            Self::In(table, at) => Some((table as usize, at as usize)),
            _ => None,
        }
    }
}

/// What a row is about, whatever its place: the selection and the marks hold on to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowId {
    /// A finding, by its check and what it is about.
    Finding(&'static str, Subject),
    /// A session or another process, by process id and start.
    Backend(BackendId),
    /// A prepared transaction, by its virtual transaction.
    Prepared(VirtualTransaction),
    /// Waiters for one lock in one mode behind one party, folded into a line.
    Group(Party, LockTag, LockMode),
    /// A long chain of sessions, folded into a line, by its first session.
    Run(Party),
    /// A lock, its holder, and the mode in which it is held.
    Lock(LockTag, Owner, LockMode),
    /// A lock that sessions wait for, whichever they are: of a row its tuple lock.
    Awaited(LockTag),
    /// All waits for a lock, as they are counted.
    Waits(LockTag),
    /// A task; where several executions of it run, all but the newest by their own id.
    Task(TaskId, Option<i64>),
    /// A lease, by where it is kept and its id there.
    Lease(LeaseId),
    /// A job of another system, by installation, part and id.
    Job(TextId),
    /// What another system starts by the clock.
    Schedule(TextId),
    /// A lease of another system, by installation and id.
    OtherLease(TextId),
    /// A queue of another system, by installation and name.
    JobQueue(TextId),
    /// A worker of another system, by installation and id.
    Worker(TextId),
    /// An item of the work queue.
    Item(ItemId),
    /// A rate limit, by its table and key.
    Limit(LimitId),
    /// An id generator, by its table and worker.
    Generator(GeneratorId),
    /// An event, or so many that are alike from there on.
    Event(u64, u32),
    /// The routine of a minute from this event on: it grows while the minute lasts.
    Routine(u64),
    /// Those who have something in common that made others wait.
    Blamed(u64),
    /// An episode of the Blame screen, by its number.
    Episode(u64),
}

impl RowId {
    /// The pane that can say most of it: its definition has the name and the detail page.
    pub fn home(self) -> Pane {
        match self {
            Self::Finding(..) => Pane::Findings,
            Self::Backend(_) => Pane::Backends,
            Self::Prepared(_) | Self::Group(..) | Self::Run(_) => Pane::Chains,
            Self::Lock(..) => Pane::Held,
            Self::Awaited(_) => Pane::Locks,
            Self::Waits(_) => Pane::Waits,
            Self::Task(..) => Pane::Tasks,
            Self::Lease(_) => Pane::Leases,
            Self::Job(_) => Pane::Jobs,
            Self::Schedule(_) => Pane::Schedules,
            Self::OtherLease(_) => Pane::OtherLeases,
            Self::JobQueue(_) => Pane::JobQueues,
            Self::Worker(_) => Pane::Workers,
            Self::Item(_) => Pane::Queue,
            Self::Limit(_) => Pane::Limits,
            Self::Generator(_) => Pane::Generators,
            Self::Event(..) | Self::Routine(_) => Pane::Events,
            Self::Blamed(_) => Pane::Blame,
            Self::Episode(_) => Pane::Episodes,
        }
    }
}

/// The holder of a lock. The `virtualtransaction` of a row is no identity: for a session-level lock it is that
/// of whatever its session does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A process, by its id and start.
    Backend(BackendId),
    /// A prepared transaction, by its virtual transaction.
    Prepared(VirtualTransaction),
}
