//! The poll: one connection, one round trip, one snapshot.
//!
//! All statements of a poll are sent before the first answer is awaited, each as a transaction of its own, so that
//! one that fails makes its own section stale and no other. The order is that of the wait graph's rule 5: first
//! `pg_blocking_pids` of processes that the scan before saw waiting, then the new scan. The server's clock is read
//! last, so that no age is negative. Nothing in a poll opens a catalog; names are looked up beside it (the module `names`).

mod identity;
mod link;
mod names;
mod opening;
mod prepare;
mod sections;
mod session;

use std::time::Duration;

pub use sections::SectionError;
pub(crate) use sections::message;
pub(in crate::pg) use sections::raw;
pub use session::{OpenError, Session, open_plain};

use crate::model::Timestamp;
use crate::model::snapshot::Snapshot;
use crate::pg::systems;
use crate::pg::tasks::Places;
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
    /// Rows of `pg_locks` above which only advisory and awaited locks are fetched.
    pub whole_scan: u64,
    /// How long a snapshot waits for names that are not known yet; later ones come with the next.
    pub name_patience: Duration,
    /// Whose tables are read by statements, beside those of superusers and of the role that is connected.
    pub trusted_owners: TrustedOwners,
    /// Where the config says that the task tables are.
    pub task_tables: Places,
    /// The same for the other lock systems.
    pub system_tables: systems::Places,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            statement_timeout: Duration::from_secs(3),
            lock_timeout: Duration::from_millis(100),
            poll_timeout: Duration::from_secs(10),
            ask: 100,
            whole_scan: 50_000,
            name_patience: Duration::from_millis(30),
            trusted_owners: TrustedOwners::default(),
            task_tables: Places::default(),
            system_tables: systems::Places::default(),
        }
    }
}

/// A poll without a snapshot: the connection is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// No answer in time.
    #[error("the server has not answered for {} s", .0.as_secs())]
    Timeout(Duration),
    /// The connection is gone.
    #[error("connection lost: {0}")]
    Lost(String),
}

/// Who waited in `before`, and since when: those who wait longest first, at most `limit`.
fn waiters(before: &Snapshot, limit: usize) -> Vec<(i32, Option<Timestamp>)> {
    let mut waiters: Vec<_> = before
        .locks
        .rows
        .iter()
        .filter(|lock| !lock.granted)
        .filter_map(|lock| Some((lock.pid?, lock.wait_start)))
        .collect();
    // A wait whose start is not known yet is the newest.
    let age = |waiter: &(i32, Option<Timestamp>)| (waiter.1.is_none(), waiter.1, waiter.0);
    if waiters.len() > limit && limit > 0 {
        waiters.select_nth_unstable_by_key(limit - 1, age);
    }
    waiters.truncate(limit);
    waiters
}

#[cfg(test)]
mod tests;
