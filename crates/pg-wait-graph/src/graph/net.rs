//! The graph in a form whose size is linear in holders and waiters.
//!
//! A thousand exclusive waiters on one lock have half a million edges among them. Here a waiter points to one node for
//! all holders that block it, and, for each conflicting mode, to the last waiter ahead that requests that mode; the
//! node of that waiter points to the one before. Paths between groups are the same as along the edges, except that a
//! group may reach itself.

use super::Queue;
use super::index::Index;
use super::queue::PerMode;

/// The nodes: first one for each group, then those that represent several.
#[derive(Debug, Clone, Default)]
pub(super) struct Net {
    /// From waiters to their blockers.
    pub(super) forward: Adjacency,
    /// From blockers to their waiters.
    pub(super) backward: Adjacency,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Adjacency {
    starts: Vec<usize>,
    targets: Vec<usize>,
}

impl Adjacency {
    fn new(nodes: usize, edges: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut starts = vec![0; nodes + 2];
        for (from, _) in edges.clone() {
            if let Some(count) = starts.get_mut(from + 2) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut targets = vec![0; sum];
        // Each start is one place too far until its targets are filled in, which moves it to its own place.
        for (from, to) in edges {
            if let Some(next) = starts.get_mut(from + 1) {
                if let Some(target) = targets.get_mut(*next) {
                    *target = to;
                }
                *next += 1;
            }
        }
        starts.truncate(nodes + 1);
        Self { starts, targets }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub(super) fn of(&self, node: usize) -> &[usize] {
        match (self.starts.get(node), self.starts.get(node + 1)) {
            (Some(from), Some(to)) => self.targets.get(*from..*to).unwrap_or_default(),
            _ => &[],
        }
    }
}

impl Net {
    pub(super) fn new(queues: &[Queue], index: &Index) -> Self {
        let mut nodes = index.len();
        let mut edges: Vec<(usize, usize)> = Vec::new();
        for (number, queue) in queues.iter().enumerate() {
            let Some(members) = index.members(number) else { continue };
            let mut holders: PerMode<Option<usize>> = PerMode::default();
            let mut last: PerMode<Option<usize>> = PerMode::default();
            for (group, waiter) in members.waiters.iter().zip(&queue.waiters) {
                let all_holders = *holders.slot(waiter.mode).get_or_insert_with(|| {
                    let blocking = queue.holders.iter().zip(&members.holders);
                    let blocking = blocking.filter(|(holder, _)| waiter.mode.conflicts_with(holder.modes));
                    edges.extend(blocking.map(|(_, holder)| (nodes, *holder)));
                    nodes += 1;
                    nodes - 1
                });
                edges.push((*group, all_holders));
                edges.extend(
                    waiter.mode.conflicts().iter().filter_map(|mode| Some((*group, last.get(mode)?))),
                );
                edges.push((nodes, *group));
                edges.extend(last.get(waiter.mode).map(|before| (nodes, before)));
                *last.slot(waiter.mode) = Some(nodes);
                nodes += 1;
            }
        }
        Self {
            forward: Adjacency::new(nodes, edges.iter().copied()),
            backward: Adjacency::new(nodes, edges.iter().map(|(from, to)| (*to, *from))),
        }
    }
}

/// A search that can be repeated without clearing its memory.
#[derive(Debug)]
pub(super) struct Search {
    seen: Vec<usize>,
    round: usize,
    todo: Vec<usize>,
}

impl Search {
    pub(super) fn new(nodes: usize) -> Self {
        Self { seen: vec![0; nodes], round: 0, todo: Vec::new() }
    }

    /// Every group that can be reached from `start`, except itself.
    pub(super) fn from(&mut self, start: usize, along: &Adjacency, groups: usize) -> Vec<usize> {
        self.beyond(&[start], along, groups)
    }

    /// Every group that can be reached from one of `starts`, which are ascending, except themselves.
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

/// Sets a value; `at` is always in range.
pub(super) fn put<T>(values: &mut [T], at: usize, value: T) {
    if let Some(place) = values.get_mut(at) {
        *place = value;
    }
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
