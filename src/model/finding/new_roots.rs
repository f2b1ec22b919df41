//! Roots that have only just become ones.

use rustc_hash::FxHashMap;

use crate::model::Timestamp;
use crate::model::wait_graph::{Party, WaitGraph};

/// Seconds for which a new root is left to end by itself: a waiter that gets its lock is one for as long as its work takes.
const YOUNG: f64 = 5.0;

/// Since when each root has been one, from look to look.
#[derive(Debug, Clone, Default)]
pub struct NewRoots {
    /// None for those that were there at the first look.
    pub(crate) since: FxHashMap<Party, Option<Timestamp>>,
    pub(crate) has_looked: bool,
}

impl NewRoots {
    /// Remembers since when each root of the graph is one, and forgets those that are none any more.
    pub fn look(&mut self, graph: &WaitGraph, now: Timestamp) {
        let first = !self.has_looked;
        let before = std::mem::take(&mut self.since);
        let since = |party: Party| match before.get(&party) {
            Some(since) => *since,
            None if first => None,
            None => Some(now),
        };
        self.since = graph.roots.iter().map(|root| (root.party, since(root.party))).collect();
        self.has_looked = true;
    }

    /// Nothing is known of the time without a connection.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether a root was seen to become one a moment ago.
    pub(super) fn is_young(&self, party: Party, now: Timestamp) -> bool {
        let since = self.since.get(&party).copied().flatten();
        since.is_some_and(|since| (now - since).as_seconds_f64() < YOUNG)
    }
}
