//! Who is behind a group, who is above it, and which groups are roots.

use rustc_hash::FxHashMap;

use super::frees::{Gone, freed};
use super::index::Index;
use super::net::{Adjacency, Net};
use super::{Queue, Root};
use locktop_base::Timestamp;

/// A search that can be repeated without clearing what it remembers.
#[derive(Debug)]
pub(super) struct Search {
    seen: Vec<usize>,
    round: usize,
    todo: Vec<usize>,
}

impl Search {
    /// For nets of this many nodes.
    pub(super) fn new(nodes: usize) -> Self {
        Self { seen: vec![0; nodes], round: 0, todo: Vec::new() }
    }

    /// Every group that can be reached from `start`, without itself.
    pub(super) fn from(&mut self, start: usize, along: &Adjacency, groups: usize) -> Vec<usize> {
        self.beyond(&[start], along, groups)
    }

    /// Every group that can be reached from one of `starts`, which are ascending, without themselves.
    pub(super) fn beyond(&mut self, starts: &[usize], along: &Adjacency, groups: usize) -> Vec<usize> {
        self.round += 1;
        for start in starts {
            self.visit(*start);
        }
        let mut found = Vec::new();
        while let Some(node) = self.todo.pop() {
            if node < groups && starts.binary_search(&node).is_err() {
                found.push(node);
            }
            for next in along.of(node) {
                self.visit(*next);
            }
        }
        found
    }

    fn visit(&mut self, node: usize) {
        if let Some(seen) = self.seen.get_mut(node)
            && *seen != self.round
        {
            *seen = self.round;
            self.todo.push(node);
        }
    }
}

/// Ranks the groups that block somebody and wait for nobody. `blockers` is how many block each group.
///
/// Roots that stop the same requests of the same locks (500 sharers of one lock) have the same numbers, which
/// are then computed once.
pub(super) fn roots(queues: &[Queue], index: &Index, net: &Net, blockers: &[u32]) -> Vec<Root> {
    struct Behind {
        blocked: u32,
        frees: u32,
        longest_wait: Option<Timestamp>,
    }
    let mut search = Search::new(net.backward.len());
    let mut known: FxHashMap<&[usize], Behind> = FxHashMap::default();
    let mut roots = Vec::new();
    for (group, _) in blockers.iter().enumerate().filter(|(_, blockers)| **blockers == 0) {
        let stops = net.backward.of(group);
        if stops.is_empty() {
            continue;
        }
        let behind = known.entry(stops).or_insert_with(|| {
            let found = search.from(group, &net.backward, index.len());
            Behind {
                blocked: count(found.len()),
                frees: count(freed(queues, index, Gone::whole(&[group])).len()),
                longest_wait: found.iter().filter_map(|behind| index.since(*behind)).min(),
            }
        });
        if behind.blocked > 0 {
            let Behind { blocked, frees, longest_wait } = *behind;
            roots.push(Root { party: index.party(group), blocked, frees, longest_wait });
        }
    }
    roots.sort_by_key(|root| {
        (std::cmp::Reverse(root.blocked), root.longest_wait.is_none(), root.longest_wait, root.party)
    });
    roots
}

/// What ending each member of the cycles would come to. All of a cycle have the same behind them.
pub(super) fn in_cycles(queues: &[Queue], index: &Index, net: &Net, cycles: &[Vec<usize>]) -> Vec<Root> {
    let mut search = Search::new(net.backward.len());
    let mut members = Vec::new();
    for cycle in cycles {
        let Some(first) = cycle.first().copied() else { continue };
        let found = search.from(first, &net.backward, index.len());
        let since = |group: &usize| index.since(*group);
        let longest_wait = found.iter().filter_map(since).chain(since(&first)).min();
        members.extend(cycle.iter().map(|group| Root {
            party: index.party(*group),
            blocked: count(found.len()),
            frees: count(freed(queues, index, Gone::whole(&[*group])).len()),
            longest_wait,
        }));
    }
    members
}

/// A count for the screen.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
