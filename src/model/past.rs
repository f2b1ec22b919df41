//! What of the looks before counts in the next one. A look that was kept is worked out anew from its snapshot and from this, and
//! comes to what it came to then.

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

/// What is remembered from look to look.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Keys that were free, or held for nothing.
    pub watch: Watch,
    /// The same of the jobs of adapters.
    pub adapters: adapter::Watch,
    /// Deadlocks, and cycles that may turn out to have been one.
    pub deadlocks: Deadlocks,
    /// Roots that have only just become ones.
    pub new_roots: NewRoots,
    /// Since when advisory locks are held.
    pub held: HeldWatch,
    /// What was counted of waits for each lock, and the waits that go on.
    pub waits: WaitCounter,
    /// Waiting sessions at each poll of the last 15 minutes.
    pub series: Arc<Series>,
    /// What the wait graph was made of at the last look that could read the locks, beside those; none before the first.
    pub graph_from: Option<GraphFrom>,
}

/// What a wait graph is made of beside the locks, whose rows stay in the snapshot when they cannot be read anew.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GraphFrom {
    /// `pg_stat_activity` at that look, which tells who is a parallel worker of whom.
    pub backends: Arc<Vec<Backend>>,
    /// The server's own word on some of the waiters.
    pub answers: Vec<Answer>,
}

/// A look, and all that is needed to work it out anew.
#[derive(Debug, Clone)]
pub struct Look {
    /// The view as it went to the screens.
    pub view: Arc<View>,
    /// What was remembered when the snapshot came.
    pub past: Arc<Past>,
    /// Why names of advisory keys could not be learned, a line each: failed or refused queries of the config.
    pub notes: Arc<[Text]>,
}

/// A look as it was kept, before it is worked out anew.
#[derive(Debug, Clone)]
pub struct KeptLook {
    /// [`View::id`] of the view that was made of it.
    pub id: u64,
    /// The snapshot as the poll brought it.
    pub snapshot: Snapshot,
    /// What was remembered when it came.
    pub past: Past,
    /// What the role of the connection may do.
    pub rights: Option<Arc<Rights>>,
    /// Names for advisory keys as they were known then.
    pub lock_names: Arc<LockNames>,
    /// Why names of advisory keys could not be learned, as in [`Look::notes`].
    pub notes: Arc<[Text]>,
    /// What had happened up to then.
    pub events: Arc<Events>,
    /// Who had cost how much waiting up to then, this look among it; none where that was not kept.
    pub blame: Option<Arc<Blame>>,
    /// Which blockers were expected then; none where that was not kept, and the recording says it once for all of its looks.
    pub expected: Option<Arc<[ExpectedBlocker]>>,
}
