//! The poll: one connection, one round trip, one snapshot.
//!
//! All statements of a poll are sent before the first answer is awaited. Each is a separate transaction, so a failure
//! makes only its own section stale. The order follows rule 5 of the wait graph: first `pg_blocking_pids` of the
//! processes that waited in the previous scan, then the new scan. The server's clock is read last, so that no age is
//! negative. A poll opens no catalog; names are looked up next to it (the module `names`).
//!
//! Behind a pooler in transaction mode the whole poll is one transaction, including the look-ups (the module `prepare`).

mod connection;
mod known;
mod link;
mod names;
mod opening;
mod prepare;
mod sections;

use std::sync::Arc;
use std::time::Duration;

pub use super::SectionError;
pub use connection::PollConnection;
pub use link::is_own;
pub(crate) use link::silence;
pub(crate) use link::take_back;
pub use opening::{OpenError, open_plain, open_second};
pub(crate) use pg_connect::message;

use rustc_hash::FxHashMap;

use crate::model::Timestamp;
use crate::model::adapter::{Adapter, Parts};
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::snapshot::Snapshot;
use crate::pg::jobs::sources::TableLocations;
use crate::pg::trust::TrustedOwners;

#[derive(Debug, Clone, PartialEq)]
pub struct PollLimits {
    pub statement_timeout: Duration,
    pub lock_timeout: Duration,
    /// Limit of the whole poll; a server that has not answered by then is considered dead.
    pub poll_timeout: Duration,
    /// Largest number of waiters passed to `pg_blocking_pids` in one poll, oldest first.
    pub ask: usize,
    /// Cost limit of these calls: the sum of the queue lengths of the waiters. The function scans the whole queue for each
    /// waiter, with the whole lock table locked (`GetBlockerStatusData` in `src/backend/storage/lmgr/lock.c`).
    pub ask_rows: usize,
    /// Number of `pg_locks` rows from which the rows of sessions inactive since the last poll are not read again.
    pub quiet_from: usize,
    /// Longest time for which such rows are not read.
    pub quiet_for: Duration,
    /// How far the server's clock may be set back within a poll without a session seeming inactive: its last change must be
    /// older by this much.
    pub clock_slack: Duration,
    /// Number of `pg_locks` rows above which only advisory and awaited locks are fetched, not counting rows that need not be
    /// sent again.
    pub whole_scan: u64,
    /// The same for all rows: the number that is kept.
    pub whole_table: u64,
    /// How long a snapshot waits for unknown names; later ones arrive with the next snapshot.
    pub name_timeout: Duration,
    /// Owners whose tables statements may read, in addition to superusers and the connected role.
    pub trusted_owners: TrustedOwners,
    pub tables: TableLocations,
    pub adapters: Arc<[Arc<Adapter>]>,
    pub adapter_parts: Parts,
    /// How long a snapshot waits for them; later rows arrive with the next snapshot.
    pub adapter_timeout: Duration,
}

impl Default for PollLimits {
    fn default() -> Self {
        Self {
            statement_timeout: Duration::from_secs(3),
            lock_timeout: Duration::from_millis(100),
            poll_timeout: Duration::from_secs(8),
            ask: 100,
            ask_rows: 20_000,
            quiet_from: 500,
            quiet_for: Duration::from_secs(60),
            clock_slack: Duration::from_secs(5),
            whole_scan: 50_000,
            whole_table: 250_000,
            name_timeout: Duration::from_millis(30),
            trusted_owners: TrustedOwners::default(),
            tables: TableLocations::default(),
            adapters: Arc::default(),
            adapter_parts: Parts::ALL,
            adapter_timeout: Duration::from_millis(30),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    #[error("the server has not answered for {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection was lost; with the known reason in one line.
    #[error("connection lost: {0}")]
    Lost(String),
    /// The session is shared with other clients.
    #[error("a pooler in transaction mode shares this session with other clients")]
    Pooled,
}

/// The waiters in `before` and the start of their waits, longest wait first: at most `ask`, and within `ask_rows`, but at
/// least one.
fn waiters(before: &Snapshot, limits: &PollLimits) -> Vec<(i32, Option<Timestamp>)> {
    // Waits for a safe snapshot are requested separately.
    let is_asked = |lock: &&Lock| !lock.granted && lock.tag.locktype() != LockType::SafeSnapshot;
    let waiting = || before.locks.last_rows().iter().filter(is_asked);
    let mut queues: FxHashMap<LockTag, usize> = FxHashMap::default();
    for lock in waiting() {
        *queues.entry(lock.tag).or_default() += 1;
    }
    let mut waiters: Vec<_> = waiting().filter(|lock| lock.pid.is_some()).collect();
    // A wait without a known start is the newest.
    let age = |lock: &&Lock| (lock.wait_start.is_none(), lock.wait_start, lock.pid);
    if waiters.len() > limits.ask && limits.ask > 0 {
        waiters.select_nth_unstable_by_key(limits.ask - 1, age);
    }
    waiters.truncate(limits.ask);
    waiters.sort_unstable_by_key(age);
    let mut rows = 0;
    let affordable = waiters.iter().take_while(|lock| {
        let queue = queues.get(&lock.tag).copied().unwrap_or_default();
        rows += queue;
        rows <= limits.ask_rows || rows == queue
    });
    affordable.filter_map(|lock| Some((lock.pid?, lock.wait_start))).collect()
}

#[cfg(test)]
mod tests;
