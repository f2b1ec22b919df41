//! Who waits for whom.
//!
//! All of it follows from one scan of `pg_locks`, so the server is not asked again for every waiter. The server's
//! own word, `pg_blocking_pids`, is taken in for the waiters it was asked about, since the order of a wait queue
//! is not in `pg_locks` and can only be inferred.
//!
//! Time and memory are linear in holders and waiters: the edges along a queue, half a million for 1,000 exclusive
//! waiters, exist only where [`WaitGraph::edges`] or [`WaitGraph::blockers_of`] is asked for them.

mod build;
mod cycles;
mod edges;
mod frees;
mod fronts;
mod index;
mod leaders;
mod lists;
mod net;
mod per_mode;
mod queue;
mod reach;
mod refine;
mod release;
mod rows;
mod search;
mod sweep;
#[cfg(test)]
mod tests;
mod tree;

use locktop_base::Timestamp;

pub use self::fronts::Front;
use self::index::Index;
use self::lists::Lists;
use self::net::Net;
use self::release::Ground;
pub use self::release::{End, Release};
use self::search::Search;
use crate::backend::Backend;
use crate::lock::{Lock, LockMode, LockModes, LockTag, VirtualTransaction};

/// Somebody who can hold a lock or wait for one: a lock group, named by its leader, or a prepared transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Party {
    /// A backend and its parallel workers, by the leader's process id.
    Backend(i32),
    /// A prepared transaction, which has no process.
    Prepared(VirtualTransaction),
}

impl Party {
    /// Process id, 0 for a prepared transaction (as `pg_blocking_pids` has it).
    #[must_use]
    pub fn pid(self) -> i32 {
        match self {
            Self::Backend(pid) => pid,
            Self::Prepared(_) => 0,
        }
    }
}

/// What `pg_blocking_pids(waiter)` returned for one waiting process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The process that was asked about.
    pub waiter: i32,
    /// Its `waitstart` in the scan before the question.
    pub wait_start: Option<Timestamp>,
    /// Leaders of the groups that block it; 0 stands for a prepared transaction.
    pub blockers: Vec<i32>,
}

/// What the graph is made from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Input<'a> {
    /// All rows of one scan of `pg_locks`, in any order.
    pub locks: &'a [Lock],
    /// Rows of `pg_stat_activity`: `leader_pid` puts processes into lock groups; statement, state and times say for whom a waiter waits
    /// next.
    pub backends: &'a [Backend],
    /// The server's own word on some of the waiters, asked before `locks` was read.
    pub answers: &'a [Answer],
    /// Whether rows of locks that no session waits for were left out.
    pub is_partial: bool,
    /// The process that polls: its own snapshot lasts no longer than the poll.
    pub own_pid: Option<i32>,
}

/// A lock that somebody waits for.
#[derive(Debug, Clone)]
pub struct Queue {
    /// The lock that is waited for.
    pub tag: LockTag,
    /// Who holds it, sorted by party.
    pub holders: Vec<Holder>,
    /// Who waits for it, front first: as inferred, as far as no accepted answer of the server says otherwise.
    /// Those whose answer was accepted are marked `exact`.
    pub waiters: Vec<Waiter>,
}

/// A group that holds a lock somebody waits for.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The lock group, or the prepared transaction.
    pub party: Party,
    /// Every mode it holds the lock in.
    pub modes: LockModes,
}

/// A process that waits for a lock.
#[derive(Debug, Clone)]
pub struct Waiter {
    /// The lock group that the process belongs to.
    pub party: Party,
    /// The process that waits: the leader of its group, or one of its parallel workers.
    pub pid: i32,
    /// The mode that it asks for.
    pub mode: LockMode,
    /// `pg_locks.waitstart`: since when; none in the first moment of a wait.
    pub wait_start: Option<Timestamp>,
    /// Index of its row in [`Input::locks`].
    pub lock: usize,
    /// The groups that the server itself named, where its answer was accepted.
    pub exact: Option<Vec<Party>>,
}

/// Why one group waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeKind {
    /// The blocker holds the lock in a mode that conflicts.
    Holder,
    /// The blocker is ahead in the queue and asks for a mode that conflicts.
    Queue,
}

/// One group waits for another, in one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The group that waits.
    pub waiter: Party,
    /// The group that it waits for.
    pub blocker: Party,
    /// Whether the blocker holds the lock or is ahead in its queue.
    pub kind: EdgeKind,
    /// Index of the waiter's row in [`Input::locks`].
    pub lock: usize,
    /// A queue edge that the server did not confirm.
    pub inferred: bool,
}

/// A party that blocks somebody and waits for nobody, or that is part of a cycle: what ending it would come to.
#[derive(Debug, Clone, PartialEq)]
pub struct Root {
    /// The group, or the prepared transaction.
    pub party: Party,
    /// Distinct waiting groups behind it, however far.
    pub blocked: u32,
    /// Groups that continue at once if it ends.
    pub frees: u32,
    /// Groups that continue after those, one after another.
    pub in_turn: u32,
    /// Groups that stay blocked by others.
    pub still_blocked: u32,
    /// Groups that may stay blocked: what they wait for next is not known.
    pub may_stay_blocked: u32,
    /// How many others must end before all that stay blocked continue; none if that is not known.
    pub others_must_end: Option<u32>,
    /// The earliest start of a wait behind it.
    pub longest_wait: Option<Timestamp>,
}

/// One place in the forest of waits: every waiting party is in it once.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// The group, or the prepared transaction.
    pub party: Party,
    /// Index in [`Tree::nodes`] of the party it is shown under.
    pub parent: Option<usize>,
    /// Those shown under it, longest wait first.
    pub children: Vec<usize>,
    /// What it waits for: index of the queue, and of the waiter in it. None for a root.
    pub waits: Option<(usize, usize)>,
    /// Whether the parent holds the lock or is ahead in its queue; none for a top.
    pub edge: Option<EdgeKind>,
    /// Parties that block it beside its parent.
    pub more_blockers: u32,
    /// Parties below it in the tree.
    pub below: u32,
    /// Index in [`WaitGraph::cycles`] when it is part of one.
    pub cycle: Option<usize>,
}

impl TreeNode {
    /// Parties that block it and that nothing around its line shows: neither the one above it nor, of the top of a cycle, the one
    /// below it that closes the circle.
    #[must_use]
    pub fn unseen_blockers(&self) -> u32 {
        let closes = self.parent.is_none() && self.cycle.is_some();
        self.more_blockers.saturating_sub(u32::from(closes))
    }
}

/// The graph as a forest: each waiting party below one of those that block it.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// All nodes; the other fields name them by their index in here.
    pub nodes: Vec<TreeNode>,
    /// The top of each tree: first the member of each cycle that has waited longest, in the order of
    /// [`WaitGraph::cycles`], then the roots in the order of [`WaitGraph::roots`], then those that wait though
    /// nobody is in their way (they are about to be granted their lock, or the scan is not of one moment).
    pub tops: Vec<usize>,
}

/// Who waits for whom, in one snapshot.
#[derive(Debug, Clone, Default)]
pub struct WaitGraph {
    /// Every lock that somebody waits for, sorted by tag.
    pub queues: Vec<Queue>,
    /// Ranked: most blocked first, then the longest wait, then the party.
    pub roots: Vec<Root>,
    /// Groups that wait for each other: a deadlock, until the server breaks it. In each, and among them, the longest
    /// wait comes first. Waiters of a queue that stand between two members of a cycle are members, too.
    pub cycles: Vec<Vec<Party>>,
    /// What ending each member of `cycles` would come to, in their order.
    pub in_cycles: Vec<Root>,
    /// The same as a forest, for showing it.
    pub tree: Tree,
    /// Number of lock groups that wait, each counted once.
    pub waiting: u32,
    index: Index,
    net: Net,
    lists: Lists,
}

impl WaitGraph {
    /// Builds the graph. Any input is accepted: rows that make no sense together yield a graph of what they say.
    #[must_use]
    pub fn build(input: Input<'_>) -> Self {
        build::build(input)
    }

    /// The holder edges (at most 200,000) and at most `queue_limit` queue edges, and how many edges were left out.
    #[must_use]
    pub fn edges(&self, queue_limit: usize) -> (Vec<Edge>, u64) {
        edges::all(&self.queues, &self.index, queue_limit)
    }

    /// The edges from `waiter` to those who block it, holders first.
    #[must_use]
    pub fn blockers_of(&self, waiter: Party) -> Vec<Edge> {
        self.index.number(waiter).map_or_else(Vec::new, |group| edges::of(&self.queues, &self.index, group))
    }

    /// Every group that `party` itself blocks, as `pg_blocking_pids` has it, longest wait first.
    #[must_use]
    pub fn directly_behind(&self, party: Party) -> Vec<Party> {
        let mut found = self
            .index
            .number(party)
            .map_or_else(Vec::new, |group| edges::to(&self.queues, &self.index, group));
        found.sort_unstable_by_key(|behind| self.index.age(*behind));
        found.into_iter().map(|behind| self.index.party(behind)).collect()
    }

    /// Every group that waits behind `party`, however far, longest wait first.
    #[must_use]
    pub fn blocked_by(&self, party: Party) -> Vec<Party> {
        self.blocked_by_all(&[party])
    }

    /// Every group that waits behind one of `parties` and is none of them, longest wait first.
    #[must_use]
    pub fn blocked_by_all(&self, parties: &[Party]) -> Vec<Party> {
        let mut found = self.behind(parties);
        found.sort_unstable_by_key(|behind| self.index.age(*behind));
        found.into_iter().map(|behind| self.index.party(behind)).collect()
    }

    /// How many [`WaitGraph::blocked_by`] would name, without putting them in order.
    #[must_use]
    pub fn blocks(&self, party: Party) -> u32 {
        search::count(self.behind(&[party]).len())
    }

    /// The numbers of those behind some parties.
    fn behind(&self, parties: &[Party]) -> Vec<usize> {
        let along = &self.net.backward;
        Search::new(along.len()).beyond(&self.numbers(parties), along, self.index.len())
    }

    /// Who stands behind which roots. Whoever waits and is behind none is part of a cycle, or behind one, or nobody is in his way.
    #[must_use]
    pub fn fronts(&self) -> Vec<Front> {
        fronts::fronts(&self.queues, &self.index, &self.net, &self.roots)
    }

    /// What the end of `parties` does to those that wait behind them. They may end at once or one after the other: the result is the
    /// same.
    #[must_use]
    pub fn release(&self, parties: &[Party], end: End) -> Release {
        release::release(self.ground(), parties, &self.numbers(parties), end)
    }

    fn ground(&self) -> Ground<'_> {
        Ground { queues: &self.queues, index: &self.index, net: &self.net, lists: &self.lists }
    }

    /// The waiting groups that would be granted their lock if `parties` went, which is less than that they continue: each is removed,
    /// and each queue that it held or was in is walked from the front, granting while nothing conflicts. They come in the order in
    /// which the server would wake them. A group with several waiting processes counts when one of them is granted its lock.
    #[must_use]
    pub fn granted_by(&self, parties: &[Party]) -> Vec<Party> {
        let freed = frees::freed(&self.queues, &self.index, frees::Gone::whole(&self.numbers(parties)));
        freed.into_iter().map(|freed| self.index.party(freed)).collect()
    }

    fn numbers(&self, parties: &[Party]) -> Vec<usize> {
        let mut numbers: Vec<usize> = parties.iter().filter_map(|party| self.index.number(*party)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The queue that `party` waits in and its place there (0 is the front): of several the one it has waited in
    /// for longest.
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
            if let Some(above) = above.get_mut(found) {
                *above = true;
            }
        }
        let is_above = |root: &Party| self.index.number(*root).and_then(|root| above.get(root).copied());
        self.roots.iter().map(|root| root.party).filter(|root| is_above(root) == Some(true)).collect()
    }
}
