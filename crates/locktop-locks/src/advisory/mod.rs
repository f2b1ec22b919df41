//! PostgreSQL's advisory locks: all 21 functions behind a key, a mode, a level and a wait.
//!
//! A *session* lock is a guard that owns its connection ([`SessionLock`]). A *transaction* lock can only be acquired
//! through a transaction, and ends with it ([`xact_lock`]). Both levels and both kinds of key share one lock manager: a
//! session's exclusive lock blocks a transaction's, but a [`Key::Bigint`] never conflicts with a [`Key::Pair`].
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use locktop_locks::advisory::{Acquired, Key, Mode, Session, SessionLock, Wait};
//! use pg_connect::conninfo::ConnInfo;
//!
//! # async fn report() {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let session = Session::open(&ConnInfo::parse("host=db.example dbname=shop")?).await?;
//! let wait = Wait::AtMost(Duration::from_secs(5));
//! match SessionLock::acquire(session, Key::Bigint(10_001), Mode::Exclusive, wait).await? {
//!     Acquired::Busy(_session) => println!("somebody else has it"),
//!     Acquired::Held(lock) => {
//!         tokio::select! {
//!             () = report() => {}
//!             reason = lock.lost() => return Err(reason.into()),
//!         }
//!         let released = lock.release().await?;
//!         assert!(released.held, "nobody unlocked it behind our back");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
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
//! nothing, and the system's own TCP keepalive probes after two hours. [`Session::open`] therefore sets
//! `tcp_keepalives_*` on the server's side, which decide when the lock is free for others, to 30 + 3 × 10 s. The client's
//! side decides when [`SessionLock::lost`] notifies the holder; a [`ConnInfo`](pg_connect::conninfo::ConnInfo) has the
//! same values unless its connection string sets others. A Unix socket needs neither, and a pooler between the two has
//! sockets of its own.
//!
//! A server that is connected and does not answer is given up after 10 s ([`AdvisoryError::Silent`]), or 10 s after the
//! end of a wait; with [`Wait::Forever`] it is never given up.

mod call;
mod error;
mod guard;
mod session;
mod transaction;

use std::time::Duration;

pub use error::AdvisoryError;
pub use guard::{Acquired, Released, SessionLock};
pub use locktop_base::LockKey as Key;
pub use session::Session;
use session::TIMEOUT;
pub use transaction::xact_lock;

/// The mode of a lock: which other requests it blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Blocks all other requests for the same key, in either mode.
    Exclusive,
    /// Blocks exclusive requests; any number of sessions may hold it shared.
    Shared,
}

/// How long to wait for a lock that another session holds.
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
