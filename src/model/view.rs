//! What the screens read: a snapshot and everything that was made of it.

use std::sync::Arc;

use super::Timestamp;
use super::backend::{Backend, BackendId};
use super::finding::{Finding, Subject};
use super::lock::{Prepared, VirtualTransaction};
use super::snapshot::Snapshot;
use super::wait_graph::{Party, WaitGraph};

/// One server among several. There is one today; every message carries its number all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TargetId(pub u16);

/// Whether the server answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Link {
    /// There has been no answer since the start.
    #[default]
    Connecting,
    /// The last poll was answered: the snapshot is new.
    Live,
    /// Lost, or not answering: the snapshot is old.
    Down {
        /// Why, in one line: the error of the connection, or how long nothing has come.
        reason: super::Text,
        /// The number of the next attempt, from 1 on.
        attempt: u32,
        /// How long after this was told the next attempt is made.
        wait: std::time::Duration,
    },
}

/// How many waited at one poll.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// [`Snapshot::taken_at`] of the poll, by the server's clock.
    pub at: Timestamp,
    /// Sessions that wait for a lock, each with its parallel workers once ([`WaitGraph::waiting`]).
    pub waiting: u32,
}

/// How many waited in the last 15 minutes, one sample a poll.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Oldest first, each with a later time than the one before it.
    pub samples: Vec<Sample>,
    /// When somebody began to wait, if since then somebody always did.
    pub waiting_since: Option<Timestamp>,
    /// What was refused up to each poll of the last minute, oldest first; empty if that is not counted or not known.
    pub refusals: Vec<super::refusals::Refusals>,
}

/// Polls are made less often than somebody asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowed {
    /// Seconds between two polls as they are made now.
    pub interval: f64,
    /// Seconds that reading `pg_locks` takes the server.
    pub cost: f64,
}

/// What the screens read. Newest wins: a view is never queued.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The server that all of it is of.
    pub target: TargetId,
    /// Counts up by one with every view of this run.
    pub id: u64,
    /// Whether the server answers: else the rest is as old as the snapshot.
    pub link: Link,
    /// That it is polled less often than asked, and why; none where it is not.
    pub slowed: Option<Slowed>,
    /// The last snapshot; none before the first.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Who waits for whom in it.
    pub graph: Arc<WaitGraph>,
    /// Where a process, a lock or a party stands in the snapshot and in the graph.
    pub index: Arc<super::snapshot_index::SnapshotIndex>,
    /// Every scheduled task with its state.
    pub tasks: Arc<super::task::Board>,
    /// Every lease, of all tables and of Redis, with its state.
    pub leases: Arc<super::lease::Board>,
    /// Every item of the work queue that was read with its state, and how many there are.
    pub queue: Arc<super::work_queue::Board>,
    /// The jobs of others' systems with their states.
    pub adapters: Arc<super::adapter::Board>,
    /// What is wrong, worst first; empty where nothing is.
    pub findings: Arc<Vec<Finding>>,
    /// How many waited at each poll of the last 15 minutes.
    pub series: Arc<Series>,
    /// What changed, up to this view.
    pub events: Arc<super::event::Events>,
    /// What the role of the connection may do and see; none while that is not known.
    pub rights: Option<Arc<super::rights::Rights>>,
    /// Since when each advisory lock is held by this process, as far as that is known.
    pub held_since: Arc<super::held::HeldLocks>,
    /// The locks of what runs, and exactly since when.
    pub runs_since: Arc<super::held::RunLocks>,
    /// Which locks were waited for since locktop began to look, how often and for how long.
    pub lock_waits: Arc<super::lock_waits::LockWaits>,
    /// Which roots cost how much waiting since the first look, by episode and by what they have in common.
    pub blame: Arc<super::blame::Blame>,
    /// Names for advisory keys: the config's, learned ones and those of well-known software.
    pub lock_names: Arc<super::lock_name::LockNames>,
    /// Which blockers are expected: by these the findings were judged.
    pub expected: Arc<[super::expected::ExpectedBlocker]>,
}

impl View {
    /// With its snapshot; none before the first.
    pub fn with_snapshot(&self) -> Option<SnapshotView<'_>> {
        self.snapshot.as_deref().map(|snapshot| SnapshotView { view: self, snapshot })
    }

    /// The identity of a process; without its start if its row is not there.
    pub fn backend_id(&self, pid: i32) -> BackendId {
        let backend = self.snapshot.as_deref().and_then(|snapshot| self.index.backend(snapshot, pid));
        backend.map_or(BackendId { pid, backend_start: None }, Backend::id)
    }
}

/// A view that has a snapshot: whatever judges a look, compares two or puts one into words reads this.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotView<'a> {
    /// What was made of the snapshot.
    pub view: &'a View,
    /// The snapshot itself.
    pub snapshot: &'a Snapshot,
}

impl std::ops::Deref for SnapshotView<'_> {
    type Target = View;

    fn deref(&self) -> &View {
        self.view
    }
}

impl<'a> SnapshotView<'a> {
    /// The process with this id.
    pub fn backend(self, pid: i32) -> Option<&'a Backend> {
        self.view.index.backend(self.snapshot, pid)
    }

    /// The prepared transaction behind a virtual transaction.
    pub fn prepared(self, xact: VirtualTransaction) -> Option<&'a Prepared> {
        self.view.index.prepared(self.snapshot, xact)
    }

    /// What is said of a party: the backend itself where there is a row of it.
    pub fn subject(self, party: Party) -> Subject {
        match self.backend(party.pid()) {
            Some(backend) => Subject::Backend(backend.id()),
            None => Subject::Party(party),
        }
    }
}
