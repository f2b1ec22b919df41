//! The poll: one connection, one round trip, one snapshot.
//!
//! All statements of a poll are sent before the first answer is awaited, each as a transaction of its own, so that
//! one that fails makes its own section stale and no other. The order is that of the wait graph's rule 5: first
//! `pg_blocking_pids` of processes that the scan before saw waiting, then the new scan. The server's clock is read
//! last, so that no age is negative. Nothing in a poll opens a catalog; names are looked up beside it (the module `names`).
//!
//! Behind a pooler that lends sessions by the transaction all of a poll is one, and what is looked up beside it is in it too (the module `loan`).

mod announced;
mod beside;
mod identity;
mod known;
mod link;
mod loan;
mod names;
mod open_error;
mod opening;
mod pooler;
mod prepare;
mod pulse;
mod safe_snapshot;
mod scan;
mod sections;
mod session;

use std::sync::Arc;
use std::time::Duration;

pub use super::section_error::SectionError;
pub use beside::{open_beside, open_plain};
pub use open_error::OpenError;
pub(crate) use pg_connect::message;
pub use pooler::is_own;
pub(crate) use pooler::take_back;
pub(crate) use pulse::silence;
pub(in crate::pg) use sections::raw;
pub use session::Session;

use rustc_hash::FxHashMap;

use crate::model::Timestamp;
use crate::model::adapter::{Adapter, Parts};
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::snapshot::Snapshot;
use crate::pg::sources::Places;
use crate::pg::trust::TrustedOwners;

/// How far a poll may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// `statement_timeout` of the session.
    pub statement_timeout: Duration,
    /// `lock_timeout` of the session: only looking up names ever waits for a lock.
    pub lock_timeout: Duration,
    /// The poll as a whole; a server that has not answered by then is taken for dead.
    pub poll_timeout: Duration,
    /// Waiters that `pg_blocking_pids` is asked about in one poll, the oldest first.
    pub ask: usize,
    /// How much that may cost the server: the lengths of the queues of those who are asked about, summed. The function goes through
    /// the whole queue for each, with all of the lock table locked (`GetBlockerStatusData` in `src/backend/storage/lmgr/lock.c`).
    pub ask_rows: usize,
    /// Rows of `pg_locks` from which on those of sessions that have done nothing since the last poll are not read again.
    pub quiet_from: usize,
    /// How long such rows may go without being read.
    pub quiet_for: Duration,
    /// How far the server's clock may be set back within a poll without a session seeming to have done nothing: so much older has its
    /// last change to be.
    pub clock_slack: Duration,
    /// Rows of `pg_locks` above which only advisory and awaited locks are fetched, those not counted that need not come again.
    pub whole_scan: u64,
    /// The same for all rows: that many are kept.
    pub whole_table: u64,
    /// How long a snapshot waits for names that are not known yet; later ones come with the next.
    pub name_timeout: Duration,
    /// Whose tables are read by statements, beside those of superusers and of the role that is connected.
    pub trusted_owners: TrustedOwners,
    /// Where the config says that tables are.
    pub tables: Places,
    /// The job systems of others that are looked for.
    pub adapters: Arc<[Arc<Adapter>]>,
    /// The parts of them that are read at all.
    pub adapter_parts: Parts,
    /// How long a snapshot waits for them; what comes later comes with the next.
    pub adapter_timeout: Duration,
}

impl Default for Limits {
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
            tables: Places::default(),
            adapters: Arc::default(),
            adapter_parts: Parts::ALL,
            adapter_timeout: Duration::from_millis(30),
        }
    }
}

/// A poll without a snapshot: the connection is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// The server has not answered within this time.
    #[error("the server has not answered for {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection is gone; with what is known of it, in one line.
    #[error("connection lost: {0}")]
    Lost(String),
    /// What was taken for a session of one's own is given to others.
    #[error("a pooler in transaction mode shares this session with other clients")]
    Lent,
}

/// Who waited in `before`, and since when: those who wait longest first, at most `ask`, and no more than `ask_rows` allows, but one.
fn waiters(before: &Snapshot, limits: &Limits) -> Vec<(i32, Option<Timestamp>)> {
    // Waits for a safe snapshot are asked about separately.
    let is_asked = |lock: &&Lock| !lock.granted && lock.tag.locktype() != LockType::SafeSnapshot;
    let waiting = || before.locks.last_rows().iter().filter(is_asked);
    let mut queues: FxHashMap<LockTag, usize> = FxHashMap::default();
    for lock in waiting() {
        *queues.entry(lock.tag).or_default() += 1;
    }
    let mut waiters: Vec<_> = waiting().filter(|lock| lock.pid.is_some()).collect();
    // A wait whose start is not known yet is the newest.
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
