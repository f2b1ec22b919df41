//! The wait graph: which group waits for which.
//!
//! It is built from one scan of `pg_locks`, so the server is not queried for every waiter. Results of
//! `pg_blocking_pids` are used for the waiters that it was called for: `pg_locks` does not show the order of a wait
//! queue, which can only be inferred.
//!
//! Time and memory are linear in holders and waiters: the edges along a queue, half a million for 1,000 exclusive
//! waiters, are built only on request by [`WaitGraph::edges`] or [`WaitGraph::blockers_of`].

mod above;
mod build;
mod frees;
mod fronts;
mod index;
mod lists;
mod net;
mod queue;
mod reach;
mod refine;
mod release;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::OnceLock;

use locktop_base::Timestamp;

use self::above::AboveInput;
pub use self::fronts::Front;
use self::index::Index;
use self::lists::Lists;
use self::net::{Net, Search};
pub use self::release::{End, Release};
use crate::backend::Backend;
use crate::lock::{Lock, LockMode, LockModes, LockTag, VirtualTransaction};

/// A party that can hold a lock or wait for one: a lock group, named by its leader, or a prepared transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Party {
    /// A backend and its parallel workers, by the leader's process ID.
    Backend(i32),
    /// A prepared transaction, which has no process.
    Prepared(VirtualTransaction),
}

impl Party {
    /// The process ID; 0 for a prepared transaction (as in `pg_blocking_pids`).
    #[must_use]
    pub fn pid(self) -> i32 {
        match self {
            Self::Backend(pid) => pid,
            Self::Prepared(_) => 0,
        }
    }
}

/// The result of `pg_blocking_pids(waiter)` for one waiting process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The waiting process.
    pub waiter: i32,
    /// Its `waitstart` in the scan before the call.
    pub wait_start: Option<Timestamp>,
    /// Leaders of the groups that block it; 0 is a prepared transaction.
    pub blockers: Vec<i32>,
}

/// The input of the graph.
#[derive(Debug, Clone, Copy, Default)]
pub struct Input<'a> {
    /// All rows of one scan of `pg_locks`, in any order.
    pub locks: &'a [Lock],
    /// Rows of `pg_stat_activity`: `leader_pid` assigns processes to lock groups; statement, state and times show what a
    /// waiter waits for next.
    pub backends: &'a [Backend],
    /// The server's answers for some of the waiters, requested before `locks` was read.
    pub answers: &'a [Answer],
    /// Whether rows of locks that no session waits for were left out.
    pub is_partial: bool,
    /// The process that polls: its own snapshot ends with the poll.
    pub own_pid: Option<i32>,
}

/// A lock that has waiters.
#[derive(Debug, Clone)]
pub struct Queue {
    /// The lock.
    pub tag: LockTag,
    /// Its holders, sorted by party.
    pub holders: Vec<Holder>,
    /// Its waiters, front first, in the inferred order unless an accepted answer of the server differs. Those whose answer
    /// was accepted are marked `exact`.
    pub waiters: Vec<Waiter>,
}

/// A group that holds a lock with waiters.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The lock group, or the prepared transaction.
    pub party: Party,
    /// All modes in which it holds the lock.
    pub modes: LockModes,
}

/// A process that waits for a lock.
#[derive(Debug, Clone)]
pub struct Waiter {
    /// The lock group of the process.
    pub party: Party,
    /// The waiting process: the leader of its group, or one of its parallel workers.
    pub pid: i32,
    /// The requested mode.
    pub mode: LockMode,
    /// `pg_locks.waitstart`: the start of the wait; `None` in its first moment.
    pub wait_start: Option<Timestamp>,
    /// Index of its row in [`Input::locks`].
    pub lock: usize,
    /// The blocking groups named by the server, if its answer was accepted.
    pub exact: Option<Vec<Party>>,
}

/// Why one group waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeKind {
    /// The blocker holds the lock in a conflicting mode.
    Holder,
    /// The blocker is ahead in the queue and requests a conflicting mode.
    Queue,
}

/// One group waits for another, in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The waiting group.
    pub waiter: Party,
    /// The group that it waits for.
    pub blocker: Party,
    /// Whether the blocker holds the lock or is ahead in its queue.
    pub kind: EdgeKind,
    /// Index of the waiter's row in [`Input::locks`].
    pub lock: usize,
    /// Whether it is a queue edge that the server did not confirm.
    pub inferred: bool,
}

/// A party that blocks others without waiting, or that is part of a cycle, with the effect of ending it.
#[derive(Debug, Clone, PartialEq)]
pub struct Root {
    /// The group, or the prepared transaction.
    pub party: Party,
    /// Distinct waiting groups behind it, directly or indirectly.
    pub blocked: u32,
    /// Groups that continue at once if it ends.
    pub frees: u32,
    /// Groups that continue after those, one after another.
    pub in_turn: u32,
    /// Groups that stay blocked by others.
    pub still_blocked: u32,
    /// Groups that may stay blocked: their next wait is not known.
    pub may_stay_blocked: u32,
    /// Number of other parties that must end before all that stay blocked continue; `None` if that is not known.
    pub others_must_end: Option<u32>,
    /// The earliest start of a wait behind it.
    pub longest_wait: Option<Timestamp>,
}

/// One node in the forest of waits; every waiting party has exactly one.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// The group, or the prepared transaction.
    pub party: Party,
    /// Index in [`Tree::nodes`] of its parent.
    pub parent: Option<usize>,
    /// Its children, longest wait first.
    pub children: Vec<usize>,
    /// Its wait: index of the queue, and of the waiter in it. `None` for a root.
    pub waits: Option<(usize, usize)>,
    /// Whether the parent holds the lock or is ahead in its queue; `None` for a top.
    pub edge: Option<EdgeKind>,
    /// Parties that block it in addition to its parent.
    pub more_blockers: u32,
    /// Parties below it in the tree.
    pub below: u32,
    /// Index in [`WaitGraph::cycles`] if it is part of one.
    pub cycle: Option<usize>,
}

impl TreeNode {
    /// Number of its blockers that are not next to it in the tree: neither its parent nor, for the top of a cycle, the
    /// child that closes the cycle.
    #[must_use]
    pub fn unseen_blockers(&self) -> u32 {
        let closes = self.parent.is_none() && self.cycle.is_some();
        self.more_blockers.saturating_sub(u32::from(closes))
    }
}

/// The graph as a forest: each waiting party below one of its blockers.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// All nodes; the other fields refer to them by index.
    pub nodes: Vec<TreeNode>,
    /// The top of each tree: first the member of each cycle that has waited longest, in the order of [`WaitGraph::cycles`],
    /// then the roots in the order of [`WaitGraph::roots`], then waiters without a blocker (they are about to be granted
    /// their lock, or the scan is not of one moment).
    pub tops: Vec<usize>,
}

/// The wait graph of one snapshot.
#[derive(Debug, Clone, Default)]
pub struct WaitGraph {
    /// Every lock with waiters, sorted by tag.
    pub queues: Vec<Queue>,
    /// Ranked: most blocked first, then the longest wait, then the party.
    pub roots: Vec<Root>,
    /// Groups that wait for each other: a deadlock, until the server resolves it. The longest wait comes first, in each
    /// cycle and among them. Waiters of a queue between two members of a cycle are members, too.
    pub cycles: Vec<Vec<Party>>,
    /// The effect of ending each member of `cycles`, in the same order.
    pub in_cycles: Vec<Root>,
    /// The graph as a forest, for display.
    pub tree: Tree,
    /// Number of waiting lock groups.
    pub waiting: u32,
    index: Index,
    net: Net,
    lists: Lists,
    /// The result of [`WaitGraph::blocks`] for each group that was asked for: a screen asks for the same groups in every frame.
    blocks: Vec<OnceLock<u32>>,
}

impl WaitGraph {
    /// Builds the graph. Any input is accepted; inconsistent rows yield a graph of what they contain.
    #[must_use]
    pub fn build(input: Input<'_>) -> Self {
        build::build(input)
    }

    /// The holder edges (at most 200,000), at most `queue_limit` queue edges, and the number of edges left out.
    #[must_use]
    pub fn edges(&self, queue_limit: usize) -> (Vec<Edge>, u64) {
        build::all(&self.queues, &self.index, queue_limit)
    }

    /// The edges from `waiter` to its blockers, holders first.
    #[must_use]
    pub fn blockers_of(&self, waiter: Party) -> Vec<Edge> {
        self.index.number(waiter).map_or_else(Vec::new, |group| build::of(&self.queues, &self.index, group))
    }

    /// Every group that `party` blocks directly, as in `pg_blocking_pids`, longest wait first.
    #[must_use]
    pub fn directly_behind(&self, party: Party) -> Vec<Party> {
        let Some(group) = self.index.number(party) else { return Vec::new() };
        self.oldest_first(build::to(&self.queues, &self.index, group))
    }

    /// Every group that waits behind `party`, directly or indirectly, longest wait first.
    #[must_use]
    pub fn blocked_by(&self, party: Party) -> Vec<Party> {
        self.blocked_by_all(&[party])
    }

    /// Every group that waits behind one of `parties` and is not one of them, longest wait first.
    #[must_use]
    pub fn blocked_by_all(&self, parties: &[Party]) -> Vec<Party> {
        self.oldest_first(self.behind(parties))
    }

    fn oldest_first(&self, mut groups: Vec<usize>) -> Vec<Party> {
        groups.sort_unstable_by_key(|group| self.index.age(*group));
        groups.into_iter().map(|group| self.index.party(group)).collect()
    }

    /// The number of groups in [`WaitGraph::blocked_by`], without sorting them.
    #[must_use]
    pub fn blocks(&self, party: Party) -> u32 {
        let kept = self.index.number(party).and_then(|group| self.blocks.get(group));
        kept.map_or(0, |kept| *kept.get_or_init(|| net::count(self.behind(&[party]).len())))
    }

    fn behind(&self, parties: &[Party]) -> Vec<usize> {
        let along = &self.net.backward;
        Search::new(along.len()).beyond(&self.numbers(parties), along, self.index.len())
    }

    /// The groups behind the roots. A waiter behind no root is part of a cycle, or behind one, or has no blocker.
    #[must_use]
    pub fn fronts(&self) -> Vec<Front> {
        fronts::fronts(&self.queues, &self.index, &self.net, &self.roots)
    }

    /// The effect of ending `parties` on those that wait behind them. The result is the same whether they end together or
    /// one after another.
    #[must_use]
    pub fn release(&self, parties: &[Party], end: End) -> Release {
        release::release(self.tree_input(), parties, &self.numbers(parties), end)
    }

    fn tree_input(&self) -> AboveInput<'_> {
        AboveInput { queues: &self.queues, index: &self.index, net: &self.net, lists: &self.lists }
    }

    /// The waiting groups that would be granted their lock if `parties` ended, which does not mean that they continue: each
    /// party is removed, and each queue that it held or was in is walked from the front, granting while nothing conflicts.
    /// They come in the order in which the server would wake them. A group with several waiting processes counts if one of
    /// them is granted its lock.
    #[must_use]
    pub fn granted_by(&self, parties: &[Party]) -> Vec<Party> {
        let freed =
            frees::freed(&self.queues, &self.index, frees::EndedGroups::whole(&self.numbers(parties)));
        freed.into_iter().map(|freed| self.index.party(freed)).collect()
    }

    fn numbers(&self, parties: &[Party]) -> Vec<usize> {
        let mut numbers: Vec<usize> = parties.iter().filter_map(|party| self.index.number(*party)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The queue that `party` waits in and its position there (0 is the front); of several queues, the one with the longest
    /// wait.
    #[must_use]
    pub fn wait_of(&self, party: Party) -> Option<(&Queue, usize)> {
        let (queue, position) = tree::longest_wait(&self.queues, &self.index, self.index.number(party)?)?;
        Some((self.queues.get(queue)?, position))
    }

    /// The roots above `party`, the one that blocks most first.
    #[must_use]
    pub fn roots_above(&self, party: Party) -> Vec<Party> {
        let Some(group) = self.index.number(party) else { return Vec::new() };
        let along = &self.net.forward;
        let mut above = vec![false; self.index.len()];
        for found in Search::new(along.len()).from(group, along, self.index.len()) {
            net::put(&mut above, found, true);
        }
        let is_above = |root: &Party| self.index.number(*root).and_then(|root| above.get(root).copied());
        self.roots.iter().map(|root| root.party).filter(|root| is_above(root) == Some(true)).collect()
    }
}
