//! The order of a wait queue, which `pg_locks` does not show.

use super::{Queue, Waiter};
use crate::lock::LockModes;

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
pub(super) struct Draft {
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
