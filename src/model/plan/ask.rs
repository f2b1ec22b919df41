//! What somebody points at.

use rustc_hash::FxHashSet;

use super::Verb;
use crate::model::backend::BackendId;
use crate::model::lease::LeaseId;
use crate::model::lock::{LockMode, LockTag, VirtualTransaction};
use crate::model::systems::TextId;
use crate::model::task::TaskId;
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;

/// A row that was chosen, by its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SelectedRow {
    /// A session, also one that merely waits for a lock on the screen of locks.
    Backend(BackendId),
    /// A session for the lock that it holds in this mode.
    Holder(BackendId, LockTag, LockMode),
    /// Waiters for one lock in one mode behind one party, folded into a line of the forest.
    Group(Party, LockTag, LockMode),
    /// A prepared transaction, of which nobody has a session.
    Prepared(VirtualTransaction),
    /// A lock that several parties hold, or none by now.
    Lock(LockTag),
    /// A task; where several executions of it run, all but the newest by their own id.
    Task(TaskId, Option<i64>),
    /// A lease in a table or in Redis.
    Lease(LeaseId),
    /// An item of the work queue.
    Item(ItemId),
    /// A job of another system.
    Job(TextId),
    /// A lease of another system.
    OtherLease(TextId),
    /// Something else, to which nothing can be done.
    Other,
}

/// Who is meant by a row of the forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Scope {
    /// The row itself; of a folded line all its members.
    #[default]
    This,
    /// The root that it is shown under.
    Root,
    /// The row itself and the others that have to end before the sessions behind it continue.
    Blockers,
}

/// What is asked of sessions: which signal, and to whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// [`Verb::Cancel`] or [`Verb::Terminate`]; nothing else is asked of sessions.
    pub verb: Verb,
    /// Who is meant by each of the rows.
    pub scope: Scope,
    /// The rows, in the order in which they are shown.
    pub chosen: Vec<SelectedRow>,
    /// They were chosen in the forest of waits: who blocks somebody there has to do so still.
    pub from_chains: bool,
    /// They were chosen where sessions are listed for what they block: a session lock of theirs is meant.
    pub of_roots: bool,
    /// What the filter shows, where there is one; nobody else is touched, whoever is meant by a row. None: everything is
    /// shown.
    pub shown: Option<FxHashSet<Party>>,
}

impl Ask {
    /// These rows themselves, chosen on a screen other than the forest, without a filter.
    pub fn new(verb: Verb, chosen: Vec<SelectedRow>) -> Self {
        Self { verb, scope: Scope::This, chosen, from_chains: false, of_roots: false, shown: None }
    }

    /// Whether who blocks somebody has to do so still.
    pub(super) fn is_of_chains(&self) -> bool {
        self.from_chains || self.scope != Scope::This
    }

    /// Whether the filter shows a party.
    pub(super) fn shows(&self, party: Party) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(&party))
    }
}
