use std::sync::Arc;

use crate::model::Timestamp;
use crate::model::backend::{Backend, BackendId};
use crate::model::finding::{Finding, Subject};
use crate::model::lease::{LeaseId, LeaseRow};
use crate::model::lock::{Prepared, VirtualTransaction};
use crate::model::normal_wait::NormalWait;
use crate::model::snapshot::Snapshot;
use crate::model::task::{TaskId, TaskRow};
use crate::model::wait_graph::{Party, Queue, Root, WaitGraph, Waiter};
use crate::model::words;
use crate::model::work_queue::{ItemId, ItemRow};
use crate::text;

/// One server among several. There is only one today, but every message carries its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TargetId(pub u16);

#[derive(Debug, Clone, PartialEq, Default)]
pub enum ConnectionState {
    #[default]
    Connecting,
    Live,
    /// The connection is lost or not answered: the snapshot is old.
    Down {
        /// One line: the connection error, or how long there has been no answer.
        reason: crate::model::Text,
        /// Number of the next attempt, from 1.
        attempt: u32,
        /// Time from this report to the next attempt.
        wait: std::time::Duration,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// [`Snapshot::taken_at`] of the poll, by the server's clock.
    pub at: Timestamp,
    /// Sessions that wait for a lock, each counted once with its parallel workers ([`WaitGraph::waiting`]).
    pub waiting: u32,
}

/// Numbers of waiters in the last 15 minutes, one sample per poll.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Oldest first, with strictly increasing times.
    pub samples: Vec<Sample>,
    /// Since when at least one session has waited at every poll.
    pub waiting_since: Option<Timestamp>,
    /// The counters of refusals at each poll of the last minute, oldest first; empty if they do not exist or are not known.
    pub refusals: Vec<crate::model::table_rows::Refusals>,
}

/// Polls are less frequent than requested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowed {
    /// Current seconds between two polls.
    pub interval: f64,
    /// Seconds that the server needs to read `pg_locks`.
    pub cost: f64,
}

/// Data for the screens. The newest view replaces older ones: a view is never queued.
#[derive(Debug, Clone, Default)]
pub struct View {
    pub target: TargetId,
    /// Incremented with every view of this run.
    pub id: u64,
    /// If the server does not answer, the rest is as old as the snapshot.
    pub link: ConnectionState,
    /// Set if polls are less frequent than requested.
    pub slowed: Option<Slowed>,
    /// None before the first snapshot.
    pub snapshot: Option<Arc<Snapshot>>,
    pub graph: Arc<WaitGraph>,
    /// Positions of processes, locks and parties in the snapshot and the graph.
    pub index: Arc<crate::model::snapshot_index::SnapshotIndex>,
    pub tasks: Arc<crate::model::task::TaskBoard>,
    pub leases: Arc<crate::model::lease::LeaseBoard>,
    pub normal_waits: Arc<crate::model::normal_wait::NormalWaits>,
    pub queue: Arc<crate::model::work_queue::QueueBoard>,
    pub adapters: Arc<crate::model::adapter::AdapterBoard>,
    /// Worst first; empty if nothing is wrong.
    pub findings: Arc<Vec<Finding>>,
    pub series: Arc<Series>,
    pub events: Arc<crate::model::event::Events>,
    /// Rights of the role of the connection; None while not known.
    pub rights: Option<Arc<crate::model::plan::Rights>>,
    /// Since when each advisory lock has been held by its process, as far as known.
    pub held_since: Arc<crate::model::held::HeldLocks>,
    /// Locks of running work, with their exact start.
    pub runs_since: Arc<crate::model::held::RunLocks>,
    /// Locks waited for since locktop started polling: how often and for how long.
    pub lock_waits: Arc<crate::model::lock_waits::LockWaits>,
    /// Waiting time caused by each root since the first snapshot, by episode and by common properties.
    pub blame: Arc<crate::model::blame::Blame>,
    pub lock_names: Arc<crate::model::lock_name::LockNames>,
    pub expected: Arc<[crate::model::thresholds::ExpectedBlocker]>,
}

impl View {
    pub fn with_snapshot(&self) -> Option<SnapshotView<'_>> {
        self.snapshot.as_deref().map(|snapshot| SnapshotView { view: self, snapshot })
    }

    /// Identity of a process; without its start if its row is missing.
    pub fn backend_id(&self, pid: i32) -> BackendId {
        let backend = self.snapshot.as_deref().and_then(|snapshot| self.index.backend(snapshot, pid));
        backend.map_or(BackendId { pid, backend_start: None }, Backend::id)
    }

    pub fn task(&self, task: TaskId, again: Option<i64>) -> Option<&TaskRow> {
        self.tasks.rows.iter().find(|row| row.task == task && row.again == again)
    }

    pub fn item(&self, id: ItemId) -> Option<&ItemRow> {
        self.queue.rows.iter().find(|row| row.id == id)
    }

    pub fn lease(&self, id: LeaseId) -> Option<&LeaseRow> {
        self.leases.rows.iter().find(|row| row.id == id)
    }

    /// The normal wait of the sessions behind this party; None if it is an ordinary blocker.
    pub fn normal_wait(&self, party: Party) -> Option<&NormalWait> {
        self.normal_waits.get(party)
    }

    /// Whether all waits in the queue are normal operation.
    pub fn is_normal(&self, queue: &Queue) -> bool {
        !queue.holders.is_empty()
            && queue.holders.iter().all(|holder| self.normal_wait(holder.party).is_some())
    }

    /// The roots except those behind which sessions wait in normal operation, worst first.
    pub fn blocking_roots(&self) -> impl DoubleEndedIterator<Item = &Root> + Clone {
        self.graph.roots.iter().filter(|root| self.normal_wait(root.party).is_none())
    }

    /// The request that has waited longest, except in normal operation.
    pub fn longest_waiter(&self) -> Option<&Waiter> {
        let queues = self.graph.queues.iter().filter(|queue| !self.is_normal(queue));
        let waiters = queues.flat_map(|queue| &queue.waiters);
        waiters.filter(|waiter| waiter.wait_start.is_some()).min_by_key(|waiter| waiter.wait_start)
    }

    /// `first in the queue for lease report of node1`, `leader of scheduler`; safe to show.
    pub fn normal_wait_words(&self, party: Party) -> Option<String> {
        let words = match self.normal_wait(party)? {
            NormalWait::Leader(name) => format!("leader of {name}"),
            _ => format!("first in the queue for {}", self.awaited_words(party)?),
        };
        Some(text::one_line(&words).into_owned())
    }

    /// The lease or permit that the first session in a queue polls for: `lease report of node1`, `a permit of exports`; safe to show.
    pub fn awaited_words(&self, party: Party) -> Option<String> {
        let words = match self.normal_wait(party)? {
            NormalWait::Lease(id) => {
                let row = self.lease(*id)?;
                let owner = row.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
                format!("lease {}{owner}", row.name)
            }
            NormalWait::Permit(name) => format!("a permit of {name}"),
            NormalWait::Leader(_) => return None,
        };
        Some(text::one_line(&words).into_owned())
    }
}

/// A view that has a snapshot, for code that evaluates, compares or describes snapshots.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotView<'a> {
    pub view: &'a View,
    pub snapshot: &'a Snapshot,
}

impl std::ops::Deref for SnapshotView<'_> {
    type Target = View;

    fn deref(&self) -> &View {
        self.view
    }
}

impl<'a> SnapshotView<'a> {
    pub fn backend(self, pid: i32) -> Option<&'a Backend> {
        self.view.index.backend(self.snapshot, pid)
    }

    pub fn prepared(self, xact: VirtualTransaction) -> Option<&'a Prepared> {
        self.view.index.prepared(self.snapshot, xact)
    }

    /// `4312 app@web-3`, `prepared transaction 'order-17'`.
    pub fn party(self, party: Party) -> String {
        match party {
            Party::Backend(pid) => words::process(pid, self.backend(pid)),
            Party::Prepared(xact) => match self.prepared(xact) {
                Some(row) => format!("prepared transaction {}", text::literal(&row.gid)),
                None => format!("prepared transaction {xact}"),
            },
        }
    }

    /// Seconds from `since` to the snapshot, at least 0.
    pub fn age(self, since: Timestamp) -> f64 {
        (self.snapshot.taken_at - since).as_seconds_f64().max(0.0)
    }

    /// Description of a party: the backend itself if its row exists.
    pub fn subject(self, party: Party) -> Subject {
        match self.backend(party.pid()) {
            Some(backend) => Subject::Backend(backend.id()),
            None => Subject::Party(party),
        }
    }
}
