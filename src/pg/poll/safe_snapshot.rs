//! Waits for a safe snapshot (`SERIALIZABLE READ ONLY DEFERRABLE`, as in `pg_dump --serializable-deferrable`). `pg_locks`
//! does not show them, `pg_safe_snapshot_blocking_pids` does: each becomes a lock that the named transactions hold and
//! the waiter requests.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::model::backend::Backend;
use crate::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};
use crate::model::snapshot::Snapshot;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SafeSnapshotWait {
    pub(super) waiter: i32,
    /// Process IDs of the transactions that must end; 0 for a prepared one (`PostPrepare_PredicateLocks` in `predicate.c`).
    pub(super) blockers: Vec<i32>,
}

/// At most `most` processes that waited for one in `before`.
pub(super) fn waiters(before: &Snapshot, most: usize) -> Vec<i32> {
    let waiting = before.backends.last_rows().iter().filter(|row| is_waiting(row));
    waiting.map(|row| row.pid).take(most).collect()
}

fn is_waiting(backend: &Backend) -> bool {
    backend.wait_event.as_deref() == Some("SafeSnapshot")
}

/// Adds locks that represent the waits. A wait whose blockers are not all known is left out.
pub(super) fn with_waits(
    locks: Arc<Vec<Lock>>,
    waits: &[SafeSnapshotWait],
    backends: &[Backend],
) -> Arc<Vec<Lock>> {
    let more: Vec<Lock> =
        waits.iter().filter_map(|wait| as_locks(&locks, wait, backends)).flatten().collect();
    if more.is_empty() {
        return locks;
    }
    Arc::new(locks.iter().chain(&more).copied().collect())
}

fn as_locks(locks: &[Lock], wait: &SafeSnapshotWait, backends: &[Backend]) -> Option<Vec<Lock>> {
    let waiter = backends.iter().find(|row| row.pid == wait.waiter && is_waiting(row))?;
    let tag = LockTag::new(LockType::SafeSnapshot).with_objid(wait.waiter.cast_unsigned());
    let lock = |pid: Option<i32>, virtualtransaction, granted| Lock {
        tag,
        // The modes of a lock on a transaction ID.
        mode: if granted { LockMode::Exclusive } else { LockMode::Share },
        granted,
        pid,
        virtualtransaction,
        // A transaction takes its snapshot at the start of its first statement.
        wait_start: waiter.query_start.filter(|_| !granted),
    };
    let own = |pid: i32| {
        let of = locks.iter().find(|lock| lock.pid == Some(pid));
        of.map_or(VirtualTransaction { proc_number: 0, local_xid: 0 }, |lock| lock.virtualtransaction)
    };
    let mut rows = vec![lock(Some(waiter.pid), own(waiter.pid), false)];
    for blocker in &wait.blockers {
        match *blocker {
            0 => rows.push(lock(None, only_prepared(locks)?, true)),
            // A process that is no longer listed has ended.
            pid if backends.iter().any(|row| row.pid == pid) => rows.push(lock(Some(pid), own(pid), true)),
            _ => {}
        }
    }
    (rows.len() > 1).then_some(rows)
}

/// The serializable prepared transaction, if there is exactly one.
fn only_prepared(locks: &[Lock]) -> Option<VirtualTransaction> {
    let read = locks.iter().filter(|lock| lock.pid.is_none() && lock.mode == LockMode::SIRead);
    let all: FxHashSet<VirtualTransaction> = read.map(|lock| lock.virtualtransaction).collect();
    let mut all = all.into_iter();
    all.next().filter(|_| all.next().is_none())
}
