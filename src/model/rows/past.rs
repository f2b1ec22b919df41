//! State carried from poll to poll. A stored poll is computed again from its snapshot and this state, with the same result.

use std::sync::Arc;

use crate::model::backend::Backend;
use crate::model::blame::Blame;
use crate::model::event::{EventKind, Events};
use crate::model::finding::{Deadlocks, NewRoots};
use crate::model::held::HeldWatch;
use crate::model::lock_name::LockNames;
use crate::model::lock_waits::WaitCounter;
use crate::model::plan::Rights;
use crate::model::snapshot::Snapshot;
use crate::model::task::TaskWatch;
use crate::model::thresholds::ExpectedBlocker;
use crate::model::view::{Series, View};
use crate::model::wait_graph::Answer;
use crate::model::{Text, Timestamp, adapter};

#[derive(Debug, Clone, Default)]
pub struct CarriedState {
    pub watch: TaskWatch,
    pub adapters: adapter::AdapterWatch,
    pub deadlocks: Deadlocks,
    pub new_roots: NewRoots,
    pub held: HeldWatch,
    pub waits: WaitCounter,
    /// Waiting sessions at each poll of the last 15 minutes.
    pub series: Arc<Series>,
    /// The input of the wait graph, apart from the locks, at the last poll that could read the locks; `None` before the first.
    pub graph_from: Option<GraphFrom>,
}

/// The input of a wait graph apart from the locks. The rows of the locks stay in the snapshot if a poll cannot read them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GraphFrom {
    /// `pg_stat_activity` at that poll, which shows the leader of each parallel worker.
    pub backends: Arc<Vec<Backend>>,
    pub answers: Vec<Answer>,
}

#[derive(Debug, Clone)]
pub struct Observation {
    pub view: Arc<View>,
    pub past: Arc<CarriedState>,
    /// Why names of advisory keys could not be found, one line each: failed or rejected queries of the config.
    pub notes: Arc<[Text]>,
}

#[derive(Debug, Clone)]
pub struct KeptObservation {
    /// [`View::id`] of the view computed from it.
    pub id: u64,
    pub snapshot: Snapshot,
    pub past: CarriedState,
    pub rights: Option<Arc<Rights>>,
    pub lock_names: Arc<LockNames>,
    pub notes: Arc<[Text]>,
    pub events: Arc<Events>,
    /// Wait time caused by each session up to and including this poll; `None` if it was not stored.
    pub blame: Option<Arc<Blame>>,
    /// Blockers that were expected at that time; `None` if they are not stored with the poll: the recording has one list for
    /// all polls.
    pub expected: Option<Arc<[ExpectedBlocker]>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Incident {
    Action,
    /// The server did not answer for a while after the snapshot.
    NoAnswer,
    /// A session began to block others, sessions waited for each other, or the session of a task ended.
    Begun,
    Deadlock,
}

impl Incident {
    /// None for an event that is no trouble.
    pub const fn of(kind: EventKind) -> Option<Self> {
        match kind {
            EventKind::RootBegun | EventKind::CycleBegun | EventKind::TaskOrphaned => Some(Self::Begun),
            EventKind::Deadlock => Some(Self::Deadlock),
            EventKind::LinkLost => Some(Self::NoAnswer),
            EventKind::ActionAsked => Some(Self::Action),
            _ => None,
        }
    }

    pub fn since(events: &Events, from: u64) -> impl Iterator<Item = Self> {
        (from..events.end()).filter_map(|number| Self::of(events.get(number)?.kind))
    }

    pub const fn sign(self) -> char {
        match self {
            Self::Action => 'a',
            Self::NoAnswer => '~',
            Self::Begun => '!',
            Self::Deadlock => 'x',
        }
    }
}

/// A kept snapshot, reduced to what the time line needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// [`View::id`] of its view, used to fetch it.
    pub id: u64,
    /// By the server's clock.
    pub at: Timestamp,
    /// Waiting sessions, each counted once with its parallel workers, and prepared transactions.
    pub waiting: u32,
    /// The worst trouble since the previous snapshot.
    pub incident: Option<Incident>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeStep {
    /// Number of snapshots forward, or back if negative.
    Snapshots(i32),
    /// Number of seconds forward, or back if negative.
    Seconds(i32),
    NextIncident,
    IncidentBefore,
    /// The snapshot at this time, or the last one before it.
    Time(Timestamp),
    /// The snapshot that saw an event, by the time when it was seen.
    Seen(Timestamp),
    /// The last snapshot before the one that saw an event: it still shows what ended.
    Before(Timestamp),
    /// The snapshot with the most waiters.
    Worst,
}

#[derive(Debug, Clone)]
pub struct PastView {
    /// The view, recomputed from what was kept.
    pub view: Arc<View>,
    /// Index among the snapshots, from 0.
    pub place: usize,
    /// All kept snapshots, oldest first.
    pub moments: Arc<[Moment]>,
}
