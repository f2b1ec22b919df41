//! State carried from poll to poll. A stored poll is computed again from its snapshot and this state, with the same result.

use std::sync::Arc;

use super::Text;
use super::adapter;
use super::backend::Backend;
use super::blame::Blame;
use super::event::Events;
use super::expected::ExpectedBlocker;
use super::finding::{Deadlocks, NewRoots};
use super::held_watch::HeldWatch;
use super::lock_name::LockNames;
use super::lock_waits::WaitCounter;
use super::plan::Rights;
use super::snapshot::Snapshot;
use super::task::Watch;
use super::view::{Series, View};
use super::wait_graph::Answer;

#[derive(Debug, Clone, Default)]
pub struct Past {
    pub watch: Watch,
    pub adapters: adapter::Watch,
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
pub struct Look {
    pub view: Arc<View>,
    pub past: Arc<Past>,
    /// Why names of advisory keys could not be found, one line each: failed or rejected queries of the config.
    pub notes: Arc<[Text]>,
}

#[derive(Debug, Clone)]
pub struct KeptLook {
    /// [`View::id`] of the view computed from it.
    pub id: u64,
    pub snapshot: Snapshot,
    pub past: Past,
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
