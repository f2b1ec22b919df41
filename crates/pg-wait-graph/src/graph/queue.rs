//! The order of a wait queue, which `pg_locks` does not show, and what is counted along it for each lock mode.

use rustc_hash::FxHashMap;

use super::{Queue, Waiter};
use crate::lock::{LockMode, LockModes};

/// A process in a queue while the graph is being built.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) group: usize,
    /// The modes in which its group already holds this lock.
    pub(super) own: LockModes,
    /// As it will be in [`Queue::waiters`].
    pub(super) waiter: Waiter,
}

/// A queue whose order is being determined.
#[derive(Debug)]
pub(super) struct QueueDraft {
    pub(super) queue: Queue,
    /// The index numbers of the groups of `queue.holders`, in the same order.
    pub(super) holders: Vec<usize>,
    /// The waiters, which become `queue.waiters` in the final order.
    pub(super) entries: Vec<Entry>,
}

/// Sorts the entries of one lock into the most likely order of the server's queue.
///
/// They arrived in the order of `waitstart`; the newest have none yet. Each goes to the end, unless its group already
/// holds the lock: then before the first waiter of another group that must wait for what it holds (`ProcSleep` in
/// `src/backend/storage/lmgr/proc.c`; `JoinWaitQueue` from PostgreSQL 18).
///
/// The server also refuses at once to queue two that would wait for each other here; that needs no rule, because the
/// refused one never appears in the queue.
pub(super) fn infer(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|entry| {
        let waiter = &entry.waiter;
        (waiter.wait_start.is_none(), waiter.wait_start, waiter.pid, waiter.party, waiter.lock)
    });
    if entries.iter().all(|entry| entry.own.is_empty()) {
        return entries;
    }
    let mut queue: Vec<Entry> = Vec::with_capacity(entries.len());
    for newcomer in entries {
        let place = if newcomer.own.is_empty() {
            None
        } else {
            queue.iter().position(|other| {
                other.group != newcomer.group && other.waiter.mode.conflicts_with(newcomer.own)
            })
        };
        queue.insert(place.unwrap_or(queue.len()), newcomer);
    }
    queue
}

/// A value for each lock mode.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PerMode<T>([T; 9]);

impl<T: Copy + Default> PerMode<T> {
    pub(super) fn get(&self, mode: LockMode) -> T {
        // The modes count from 1.
        self.0.get(mode as usize - 1).copied().unwrap_or_default()
    }

    pub(super) fn slot(&mut self, mode: LockMode) -> &mut T {
        let [one, two, three, four, five, six, seven, eight, nine] = &mut self.0;
        match mode {
            LockMode::AccessShare => one,
            LockMode::RowShare => two,
            LockMode::RowExclusive => three,
            LockMode::ShareUpdateExclusive => four,
            LockMode::Share => five,
            LockMode::ShareRowExclusive => six,
            LockMode::Exclusive => seven,
            LockMode::AccessExclusive => eight,
            LockMode::SIRead => nine,
        }
    }
}

impl PerMode<u32> {
    /// Counts a group for the modes that it was not counted for yet.
    pub(super) fn count(&mut self, counted: &mut LockModes, modes: LockModes) {
        for mode in modes.iter().filter(|mode| !counted.intersects(LockModes::of(*mode))) {
            *self.slot(mode) += 1;
        }
        *counted = counted.union(modes);
    }
}

/// The requests that must wait while another group holds all of `held`: conflicts are symmetric.
pub(super) fn stopped_by(held: LockModes) -> LockModes {
    held.iter().fold(LockModes::default(), |all, mode| all.union(mode.conflicts()))
}

/// Counts, position by position along a queue, the distinct groups that block a request there.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    stopping: PerMode<u32>,
    /// For each group passed, the requests for which it was already counted.
    passed: FxHashMap<usize, LockModes>,
}

impl Sweep {
    /// Counts the holders too: `stopping` is the number of holders that block each mode.
    pub(super) fn with_holders(stopping: PerMode<u32>) -> Self {
        Self { stopping, passed: FxHashMap::default() }
    }

    /// The number of other groups that block this waiter, which then counts for those behind it. `own` is the modes in
    /// which its group holds the lock, empty if holders are not counted.
    pub(super) fn pass(&mut self, group: usize, own: LockModes, mode: LockMode) -> u32 {
        let passed = self.passed.entry(group).or_insert_with(|| stopped_by(own));
        let itself = u32::from(passed.intersects(LockModes::of(mode)));
        let blockers = self.stopping.get(mode).saturating_sub(itself);
        self.stopping.count(passed, mode.conflicts());
        blockers
    }
}
