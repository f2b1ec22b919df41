//! Numbers for the groups of the graph, and where each of them holds or waits.

use rustc_hash::FxHashMap;

use super::per_mode::{PerMode, stopped_by};
use super::{Party, Queue};
use crate::lock::LockModes;
use locktop_base::Timestamp;

/// What the graph looks up besides its queues. Groups are numbers here, counted from 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    numbers: FxHashMap<Party, usize>,
    groups: Vec<Group>,
    queues: Vec<Members>,
    /// Queues with a wait that no other group blocks: its lock is about to be granted.
    pub(super) clear: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Group {
    party: Party,
    /// `(queue, modes)` of each lock that it holds, queues ascending.
    holds: Vec<(usize, LockModes)>,
    /// `(queue, position)` of each of its processes that waits, ascending.
    waits: Vec<(usize, usize)>,
    /// When it began to wait.
    since: Option<Timestamp>,
}

/// The members of one queue, in the order of [`Queue::holders`] and [`Queue::waiters`].
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    pub(super) holders: Vec<usize>,
    pub(super) waiters: Vec<usize>,
    /// How many holders keep a request for each mode waiting.
    pub(super) stopping: PerMode<u32>,
    /// The modes that are asked for.
    pub(super) requests: LockModes,
}

impl Index {
    /// The number of `party`, a new one if it has none.
    pub(super) fn intern(&mut self, party: Party) -> usize {
        *self.numbers.entry(party).or_insert_with(|| {
            self.groups.push(Group { party, holds: Vec::new(), waits: Vec::new(), since: None });
            self.groups.len() - 1
        })
    }

    /// The number of `party`.
    pub(super) fn number(&self, party: Party) -> Option<usize> {
        self.numbers.get(&party).copied()
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// The group with this number.
    pub(super) fn party(&self, group: usize) -> Party {
        self.groups.get(group).map_or(Party::Backend(0), |group| group.party)
    }

    /// Adds a held mode; queues must come in ascending order. True when the group was no holder of it before.
    pub(super) fn hold(&mut self, group: usize, queue: usize, modes: LockModes) -> bool {
        let Some(group) = self.groups.get_mut(group) else { return false };
        match group.holds.last_mut() {
            Some((last, held)) if *last == queue => {
                *held = held.union(modes);
                false
            }
            _ => {
                group.holds.push((queue, modes));
                true
            }
        }
    }

    /// What the group holds of the lock of `queue`.
    pub(super) fn held(&self, group: usize, queue: usize) -> LockModes {
        let holds = self.holds(group);
        holds
            .binary_search_by_key(&queue, |(queue, _)| *queue)
            .ok()
            .and_then(|at| holds.get(at))
            .map_or_else(LockModes::default, |(_, modes)| *modes)
    }

    /// `(queue, modes)` of every awaited lock that the group holds.
    pub(super) fn holds(&self, group: usize) -> &[(usize, LockModes)] {
        self.groups.get(group).map_or(&[], |group| &group.holds)
    }

    /// `(queue, position)` of every wait of the group.
    pub(super) fn waits(&self, group: usize) -> &[(usize, usize)] {
        self.groups.get(group).map_or(&[], |group| &group.waits)
    }

    /// Sorts by the longest wait: those still without a start are the newest, and a tie goes to the lesser party.
    pub(super) fn age(&self, group: usize) -> (bool, Option<Timestamp>, Party) {
        let since = self.since(group);
        (since.is_none(), since, self.party(group))
    }

    /// When the group's longest wait began.
    pub(super) fn since(&self, group: usize) -> Option<Timestamp> {
        self.groups.get(group).and_then(|group| group.since)
    }

    /// The members of a queue.
    pub(super) fn members(&self, queue: usize) -> Option<&Members> {
        self.queues.get(queue)
    }

    /// Takes in a queue whose holders and order are final.
    pub(super) fn add_queue(&mut self, queue: &Queue, holders: Vec<usize>, waiters: Vec<usize>) {
        let number = self.queues.len();
        let mut members = Members { holders, waiters, ..Members::default() };
        for holder in &queue.holders {
            for mode in stopped_by(holder.modes).iter() {
                *members.stopping.slot(mode) += 1;
            }
        }
        for (position, (group, waiter)) in members.waiters.iter().zip(&queue.waiters).enumerate() {
            members.requests = members.requests.union(LockModes::of(waiter.mode));
            if let Some(group) = self.groups.get_mut(*group) {
                group.waits.push((number, position));
                group.since = match (group.since, waiter.wait_start) {
                    (Some(old), Some(new)) => Some(old.min(new)),
                    (old, new) => old.or(new),
                };
            }
        }
        self.queues.push(members);
    }
}
