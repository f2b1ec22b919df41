use rustc_hash::FxHashSet;

use super::Verb;
use crate::model::row_id::RowId;
use crate::model::wait_graph::Party;

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
    pub chosen: Vec<RowId>,
    /// The rows were chosen in the forest of waits: a session that blocked another must still do so.
    pub from_chains: bool,
    /// The rows were chosen in a list of blockers: a session-level lock is meant.
    pub of_roots: bool,
    /// The parties that the filter shows; no other session is touched, whatever a row means. `None`: no filter.
    pub shown: Option<FxHashSet<Party>>,
}

impl Ask {
    pub fn new(verb: Verb, chosen: Vec<RowId>) -> Self {
        Self { verb, scope: Scope::This, chosen, from_chains: false, of_roots: false, shown: None }
    }

    pub(super) fn is_of_chains(&self) -> bool {
        self.from_chains || self.scope != Scope::This
    }

    pub(super) fn shows(&self, party: Party) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(&party))
    }
}
