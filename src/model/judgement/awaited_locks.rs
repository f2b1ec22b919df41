//! The locks that sessions wait for, each once. Waits for a row are in two queues of the server: the first session waits
//! for the end of the transaction that changed the row, the others for the tuple lock that the first one holds meanwhile.
//! Here they are one.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockModes, LockTag, LockType};
use crate::model::snapshot::Snapshot;
use crate::model::wait_graph::{Holder, Party, Queue, WaitGraph, Waiter};

use crate::order::SortExt;

#[derive(Debug, Clone)]
pub struct AwaitedLock {
    /// The locked object; for a row, its tuple lock.
    pub tag: LockTag,
    /// The holders that conflict with a request. Empty: the lock has just been released.
    pub holders: Vec<LockHold>,
    /// Queue and waiter indexes in the graph, the next one to get the lock first.
    waiters: Vec<(usize, usize)>,
    /// The requested modes with the number of requests, the most frequent first.
    pub modes: Vec<(LockMode, usize)>,
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockHold {
    pub party: Party,
    /// For a row, the lock of the holder's transaction on its own id.
    pub tag: LockTag,
    pub mode: LockMode,
}

impl AwaitedLock {
    pub fn waiters<'a>(&'a self, graph: &'a WaitGraph) -> impl Iterator<Item = &'a Waiter> {
        self.waiters.iter().filter_map(|(queue, waiter)| graph.queues.get(*queue)?.waiters.get(*waiter))
    }

    pub fn queued(&self) -> usize {
        self.waiters.len()
    }

    pub fn only_holder(&self) -> Option<LockHold> {
        if let [holder] = self.holders.as_slice() { Some(*holder) } else { None }
    }

    pub fn is_held_by(&self, party: Party) -> bool {
        self.holders.iter().any(|hold| hold.party == party)
    }

    fn take(&mut self, waiter: &Waiter, place: (usize, usize)) {
        self.waiters.push(place);
        match self.modes.iter_mut().find(|(mode, _)| *mode == waiter.mode) {
            Some((_, count)) => *count += 1,
            None => self.modes.push((waiter.mode, 1)),
        }
        self.since = self.since.into_iter().chain(waiter.wait_start).min();
    }

    fn finish(&mut self, graph: &WaitGraph) {
        self.modes.order_by_key(|(mode, count)| (Reverse(*count), *mode));
        let of_transactions = |queue: &&Queue| queue.tag.locktype() == LockType::TransactionId;
        let mut queues: Vec<usize> = self.waiters.iter().map(|(queue, _)| *queue).collect();
        queues.dedup();
        let mut queues: Vec<&Queue> = queues.iter().filter_map(|at| graph.queues.get(*at)).collect();
        // The holder of the tuple lock waits for the transaction itself.
        if queues.iter().any(of_transactions) {
            queues.retain(of_transactions);
        }
        let hold = |queue: &Queue, holder: &Holder| {
            let conflicts =
                |waiter: &Waiter| waiter.party != holder.party && waiter.mode.conflicts_with(holder.modes);
            let mode = holder.modes.iter().last().filter(|_| self.waiters(graph).any(conflicts))?;
            Some(LockHold { party: holder.party, tag: queue.tag, mode })
        };
        let pairs = queues.into_iter().flat_map(|queue| queue.holders.iter().map(move |one| (queue, one)));
        let mut holders: Vec<LockHold> = pairs.filter_map(|(queue, holder)| hold(queue, holder)).collect();
        holders.order_by_key(|holder| holder.party);
        holders.dedup_by_key(|holder| holder.party);
        self.holders = holders;
    }
}

/// The longest queue first, then the longest wait.
#[derive(Debug, Clone, Default)]
pub struct AwaitedLocks {
    locks: Vec<AwaitedLock>,
    places: FxHashMap<LockTag, usize>,
}

impl AwaitedLocks {
    pub(in crate::model) fn of(graph: &WaitGraph, rows: &AwaitedRows) -> Self {
        let mut all = Self::default();
        let is_of_transaction =
            |(_, queue): &(usize, &Queue)| queue.tag.locktype() == LockType::TransactionId;
        let queues = || graph.queues.iter().enumerate();
        // Sessions that wait for the transaction get the row before those that wait for the tuple lock.
        let rest = queues().filter(|one| !is_of_transaction(one));
        for (at, queue) in queues().filter(is_of_transaction).chain(rest) {
            for (place, waiter) in queue.waiters.iter().enumerate() {
                all.add(*rows.awaited(&queue.tag, waiter.pid), waiter, (at, place));
            }
        }
        for lock in &mut all.locks {
            lock.finish(graph);
        }
        all.locks.order_by_key(|lock| (Reverse(lock.queued()), lock.since.is_none(), lock.since, lock.tag));
        all.places = all.locks.iter().enumerate().map(|(at, lock)| (lock.tag, at)).collect();
        all
    }

    fn add(&mut self, tag: LockTag, waiter: &Waiter, place: (usize, usize)) {
        let at = *self.places.entry(tag).or_insert(self.locks.len());
        if at >= self.locks.len() {
            let (holders, waiters, modes) = (Vec::new(), Vec::new(), Vec::new());
            self.locks.push(AwaitedLock { tag, holders, waiters, modes, since: None });
        }
        if let Some(lock) = self.locks.get_mut(at) {
            lock.take(waiter, place);
        }
    }

    pub fn all(&self) -> &[AwaitedLock] {
        &self.locks
    }

    pub fn get(&self, tag: &LockTag) -> Option<&AwaitedLock> {
        self.locks.get(*self.places.get(tag)?)
    }
}

/// The rows behind waits for a transaction. A session that waits to change a row changed by another session waits for that
/// session's transaction, and holds the row's tuple lock meanwhile (`src/backend/access/heap/README.tuplock` of the
/// server).
#[derive(Debug, Clone, Default)]
pub struct AwaitedRows {
    /// The held tuple locks, by their holder; empty if no session waits for a transaction.
    tuples: FxHashMap<i32, LockTag>,
}

impl AwaitedRows {
    pub fn of(snapshot: &Snapshot, graph: &WaitGraph) -> Self {
        if !graph.queues.iter().any(|queue| queue.tag.locktype() == LockType::TransactionId) {
            return Self::default();
        }
        let tuples = snapshot.locks.last_rows().iter().filter(|lock| lock.tag.locktype() == LockType::Tuple);
        let held = tuples.filter(|lock| lock.granted).filter_map(|lock| Some((lock.pid?, lock.tag)));
        Self { tuples: held.collect() }
    }

    /// What `waiter` waits for: the row if its tuple lock shows it, otherwise the awaited lock itself.
    pub fn awaited<'a>(&'a self, tag: &'a LockTag, waiter: i32) -> &'a LockTag {
        match tag.locktype() {
            LockType::TransactionId => self.tuples.get(&waiter).unwrap_or(tag),
            _ => tag,
        }
    }
}

/// Sessions that wait behind a request that waits itself: an `ALTER TABLE` behind a long query, and every reader of the
/// table behind it.
///
/// How many wait only because of each place in the queue, in order of the places. Linear: only the first request for each
/// mode is remembered.
pub fn waits_by_mode(queue: &Queue) -> Vec<(usize, u32)> {
    let held = queue.holders.iter().fold(LockModes::default(), |modes, holder| modes.union(holder.modes));
    let holders: FxHashSet<Party> = queue.holders.iter().map(|holder| holder.party).collect();
    let mut first: Vec<(LockMode, usize)> = Vec::new();
    let mut behind: FxHashMap<usize, u32> = FxHashMap::default();
    for (place, waiter) in queue.waiters.iter().enumerate() {
        // A session that already holds the lock queues by other rules.
        if !waiter.mode.conflicts_with(held) && !holders.contains(&waiter.party) {
            let ahead = first.iter().filter(|(mode, _)| waiter.mode.conflicts_with(LockModes::of(*mode)));
            if let Some(place) = ahead.map(|(_, place)| *place).min() {
                *behind.entry(place).or_default() += 1;
            }
        }
        if !first.iter().any(|(mode, _)| *mode == waiter.mode) {
            first.push((waiter.mode, place));
        }
    }
    let mut places: Vec<_> = behind.into_iter().collect();
    places.sort_unstable();
    places
}
