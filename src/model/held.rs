//! Since when a lock is held.

use rustc_hash::FxHashMap;

use super::Timestamp;
use super::lock::{LockTag, LockType};
use super::snapshot::Snapshot;
use super::task::{Board, TaskState};

/// Since when a process has held an advisory lock, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSince {
    /// Surely without a break from then on: the age is a lower bound.
    pub proved: Timestamp,
    /// It was seen at every look from then on. In between it may have been released and taken again.
    pub seen: Timestamp,
}

/// Holders and their locks.
pub type HeldLocks = FxHashMap<(i32, LockTag), HeldSince>;

/// Locks that are the keys of what runs, by who holds them, and when that began: for these the time is exact.
pub type RunLocks = FxHashMap<(i32, LockTag), Timestamp>;

/// The keys of what runs, held by the session of its worker.
#[must_use]
pub fn runs(tasks: &Board, snapshot: &Snapshot) -> RunLocks {
    let runs = tasks.rows.iter().filter(|row| matches!(row.state, TaskState::Running | TaskState::Slow));
    let key = |row: &super::task::TaskRow| {
        let began = row.execution(snapshot)?.started_at?;
        Some(((row.holder?, row.tag?), began))
    };
    runs.filter_map(key).filter(|((_, tag), _)| tag.locktype == LockType::Advisory).collect()
}
