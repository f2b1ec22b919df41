//! The order of a wait queue, which `pg_locks` does not show.

use super::{Queue, Waiter};
use crate::lock::LockModes;

/// A process in a queue while the graph is being built.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Number of its group.
    pub(super) group: usize,
    /// What its group already holds on this lock.
    pub(super) own: LockModes,
    /// The waiter as it will be in [`Queue::waiters`].
    pub(super) waiter: Waiter,
}

/// A queue while its order is being found.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) queue: Queue,
    /// The numbers that the index has for the groups of `queue.holders`, in the same order.
    pub(super) holders: Vec<usize>,
    /// Those that wait, which become `queue.waiters` in the order that is found.
    pub(super) entries: Vec<Entry>,
}

/// Puts the entries of one lock in the order in which the server has most likely queued them.
///
/// They came in the order of `waitstart`, the newest still without one. Each goes to the end, unless its group
/// already holds the lock: then before the first waiter of another group that must wait for what it holds
/// (`ProcSleep` in `src/backend/storage/lmgr/proc.c`; `JoinWaitQueue` from PostgreSQL 18).
///
/// The server also refuses at once to queue two that would wait for each other here; that needs no rule, since
/// the refused one never appears in the queue.
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
