//! PostgreSQL's advisory locks: all 21 functions behind a key, a mode, a level and a wait.
//!
//! A *session* lock is a [`Guard`], taken by [`Locks`] on a connection of its own, from a pool or not. A *transaction* lock
//! can only be acquired through a transaction, and ends with it ([`xact_lock`]). Both levels and both kinds of key share
//! one lock manager: a session's exclusive lock blocks a transaction's, but a [`Key::Bigint`] never conflicts with a
//! [`Key::Pair`].
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use locktop_locks::Held;
//! use locktop_locks::advisory::{Locks, Wait};
//! use locktop_locks::pg_connect::conninfo::ConnInfo;
//!
//! # async fn report() {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let locks = Locks::new(ConnInfo::parse("host=db.example dbname=shop")?);
//! let wait = Wait::AtMost(Duration::from_secs(5));
//! match locks.try_lock("monthly report", wait).await? {
//!     None => println!("another session holds the lock"),
//!     Some(guard) => {
//!         // Dropped midway if the lock is lost.
//!         guard.run(report()).await?;
//!         guard.release().await?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Pools
//!
//! [`Locks::new`] takes a [`Source`] of connections: a `ConnInfo`, which connects for each lock, or, with the feature of
//! its name, a pool of `deadpool`, `bb8` or `sqlx`. A released guard returns its connection without a lock or a changed
//! setting; a dropped one closes it, so that no connection in a pool ever holds a lock. An
//! `idle_session_timeout` of the pool that is shorter than the time between two pings (10 s; sqlx: 250 ms) ends the lock. Each guard and each
//! waiter has a connection: work under a lock that takes another one of the same pool needs a pool that is larger than the
//! number of those who wait.
//!
//! A standby has locks of its own: with several hosts, `target_session_attrs=read-write` keeps all clients on the primary.
//!
//! # Server behaviour
//!
//! From "Advisory Lock Functions" and "Advisory Locks" in PostgreSQL's documentation, and verified by the tests on each
//! version:
//!
//! - Locks stack: a session that holds one gets it again, and must release it as often. `pg_locks` still shows one row.
//! - A session lock that was taken in a transaction survives its ROLLBACK. Neither `pg_cancel_backend` nor an error
//!   releases it, only an unlock by the same session or its end.
//! - `pg_locks` does not distinguish the two levels.
//!
//! # When a host vanishes
//!
//! The server releases a session's lock when it notices that the connection has ended. A host that loses power sends
//! nothing, and the system's own TCP keepalive probes after two hours. A connection of a `ConnInfo` therefore sets
//! `tcp_keepalives_*` on the server's side, which decide when the lock is free for others, to 30 + 3 × 10 s. The client's
//! side decides when [`Held::lost`](crate::Held::lost) notifies the holder; a [`ConnInfo`](pg_connect::conninfo::ConnInfo) has the same
//! values unless its connection string sets others, and a pool's connection is pinged every 10 s (sqlx: every 250 ms). A Unix socket needs
//! neither, and a pooler between the two has sockets of its own.
//!
//! A server that is connected and does not answer is given up after 10 s ([`Error::Silent`](crate::Error::Silent)), or 10 s after the
//! end of a wait; with [`Wait::Forever`] it is never given up.

mod guard;
mod key;
mod locks;
mod session;
pub mod source;
mod transaction;

use std::time::Duration;

pub use guard::Guard;
pub use key::Key;
pub use locks::{Holder, Locks, NAMED};
use session::TIMEOUT;
pub use source::{Conn, Source};
pub use transaction::xact_lock;

/// The mode of a lock: which other requests it blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Blocks all other requests for the same key, in either mode.
    Exclusive,
    /// Blocks exclusive requests; any number of sessions may hold it shared.
    Shared,
}

/// How long to wait for a lock that another session holds. The time to connect does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until it is free, however long that takes.
    Forever,
    /// Not at all: `pg_try_advisory_lock`.
    Never,
    /// At most this long, by the server's `lock_timeout`: in milliseconds, rounded up. Zero is [`Wait::Never`].
    AtMost(Duration),
}

impl Wait {
    /// Time limit for the answer. A server that has died does not enforce the limit that it was given.
    fn timeout(self) -> Option<Duration> {
        match self {
            Self::Forever => None,
            Self::Never => Some(TIMEOUT),
            Self::AtMost(limit) => Some(limit.saturating_add(TIMEOUT)),
        }
    }

    /// `lock_timeout` in milliseconds; 0 is no limit. `None` is for not waiting.
    fn lock_timeout(self) -> Option<u32> {
        match self {
            Self::Forever => Some(0),
            Self::Never | Self::AtMost(Duration::ZERO) => None,
            Self::AtMost(limit) => {
                let milliseconds = limit.as_nanos().div_ceil(1_000_000);
                // The setting's maximum: 24 days.
                Some(
                    u32::try_from(milliseconds)
                        .map_or(i32::MAX.unsigned_abs(), |ms| ms.min(i32::MAX.unsigned_abs())),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_shorter_than_asked_for_and_never_for_ever_by_accident() {
        for (wait, expected) in [
            (Wait::Forever, Some(0)),
            (Wait::Never, None),
            (Wait::AtMost(Duration::ZERO), None),
            (Wait::AtMost(Duration::from_nanos(1)), Some(1)),
            (Wait::AtMost(Duration::from_micros(1_001)), Some(2)),
            (Wait::AtMost(Duration::from_secs(3)), Some(3_000)),
            (Wait::AtMost(Duration::MAX), Some(2_147_483_647)),
        ] {
            assert_eq!(wait.lock_timeout(), expected, "{wait:?}");
        }
    }
}
