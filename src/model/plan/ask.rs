use rustc_hash::FxHashSet;

use super::Verb;
use crate::model::backend::BackendId;
use crate::model::lease::LeaseId;
use crate::model::lock::{LockMode, LockTag, VirtualTransaction};
use crate::model::systems::TextId;
use crate::model::task::TaskId;
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SelectedRow {
    /// A session, or on the screen of locks one that only waits for a lock.
    Backend(BackendId),
    /// A session chosen for the lock that it holds in this mode.
    Holder(BackendId, LockTag, LockMode),
    /// Waiters for one lock in one mode behind one party, folded into a line of the forest.
    Group(Party, LockTag, LockMode),
    Prepared(VirtualTransaction),
    /// A lock with several holders, or with none any more.
    Lock(LockTag),
    /// A task; if several executions of it run, all but the newest have their own id.
    Task(TaskId, Option<i64>),
    Lease(LeaseId),
    Item(ItemId),
    Job(TextId),
    OtherLease(TextId),
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Scope {
    /// The row itself; for a folded line, all its members.
    #[default]
    This,
    Root,
    /// The row itself and the others that must end before the sessions behind it continue.
    Blockers,
}

impl Scope {
    pub const fn letter(self) -> char {
        match self {
            Self::This => 't',
            Self::Root => 'r',
            Self::Blockers => 'b',
        }
    }
}

/// Something else that the request could mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The key that selects it, as an alternative to Tab.
    pub letter: char,
    pub title: String,
    pub taken: bool,
    /// A switch is independent; the other choices exclude each other.
    pub is_switch: bool,
}

impl Choice {
    pub fn one_of(letter: char, title: impl Into<String>, taken: bool) -> Self {
        Self { letter, title: title.into(), taken, is_switch: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// [`Verb::Cancel`] or [`Verb::Terminate`], no other verb.
    pub verb: Verb,
    pub scope: Scope,
    pub chosen: Vec<SelectedRow>,
    /// The rows were chosen in the forest of waits: a session that blocked another must still do so.
    pub from_chains: bool,
    /// The rows were chosen in a list of blockers: a session-level lock is meant.
    pub of_roots: bool,
    /// The parties that the filter shows; no other session is touched, whatever a row means. `None`: no filter.
    pub shown: Option<FxHashSet<Party>>,
}

impl Ask {
    pub fn new(verb: Verb, chosen: Vec<SelectedRow>) -> Self {
        Self { verb, scope: Scope::This, chosen, from_chains: false, of_roots: false, shown: None }
    }

    pub(super) fn is_of_chains(&self) -> bool {
        self.from_chains || self.scope != Scope::This
    }

    pub(super) fn shows(&self, party: Party) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(&party))
    }
}
