use rustc_hash::FxHashMap;

use crate::model::Timestamp;
use crate::model::wait_graph::{Party, WaitGraph};

/// Seconds before a new root is reported as a problem: a waiter that gets its lock is a root for as long as its work takes.
const YOUNG: f64 = 5.0;

#[derive(Debug, Clone, Default)]
pub struct NewRoots {
    /// None for those that existed at the first poll.
    pub(crate) since: FxHashMap<Party, Option<Timestamp>>,
    pub(crate) has_looked: bool,
}

impl NewRoots {
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

    /// The time without a connection is unknown.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_young(&self, party: Party, now: Timestamp) -> bool {
        let since = self.since.get(&party).copied().flatten();
        since.is_some_and(|since| (now - since).as_seconds_f64() < YOUNG)
    }
}
