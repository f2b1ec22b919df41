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
//! A server that is connected and does not answer is given up after 10 s ([`Error::Silent`]), or 10 s after the
//! end of a wait; with [`Wait::Forever`] it is never given up.

mod guard;
mod locks;
mod session;
pub mod source;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

use crate::Error;
pub use guard::Guard;
pub use locks::{Holder, Locks, NAMED};
use locktop_base::LockKey;
use session::{TIMEOUT, XACT_LOCK, XACT_TRY, call};
use source::within;
pub use source::{Conn, Source};

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

/// Longest name that is sent with a lock, in bytes: `pg_stat_activity` keeps 1,024 bytes of a statement.
const SHOWN: usize = 200;

/// The key of an advisory lock. All keys of a database share one lock manager.
///
/// A name is hashed to a 64-bit key, [`Key::named`], which SQL computes in the same way:
///
/// ```sql
/// SELECT ('x' || left(encode(sha256(convert_to('locktop-lock:' || 'invoice:7', 'UTF8')), 'hex'), 16))::bit(64)::bigint
/// ```
///
/// A statement that locks a name has it in a comment, so it is in `pg_stat_activity.query` of the holder and of those who
/// wait, and in the server's log of a long wait; locktop shows it. The comment of [`Locks::elect`] begins with
/// `lead` instead of `lock`, by which locktop recognizes an election. There is no comment for a name of more than 200 bytes, or with
/// `/*`, `*/` or a control character. A name must not be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Key {
    /// One 64-bit key.
    Bigint(i64),
    /// Two 32-bit keys; never in conflict with a 64-bit key.
    Pair(i32, i32),
    /// The 64-bit key of this name.
    Named(i64, Arc<str>),
}

impl Key {
    /// The key of a name: the first 8 bytes, big-endian, of the SHA-256 of `locktop-lock:` and the name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let hash = Sha256::new_with_prefix("locktop-lock:").chain_update(name).finalize();
        let first = hash.first_chunk().copied().unwrap_or_default();
        Self::Named(i64::from_be_bytes(first), name.into())
    }

    /// The key as it is in `pg_locks`.
    #[must_use]
    pub fn number(&self) -> LockKey {
        match *self {
            Self::Bigint(key) | Self::Named(key, _) => LockKey::Bigint(key),
            Self::Pair(first, second) => LockKey::Pair(first, second),
        }
    }

    /// The name as a comment of a statement, after a word that tells what it is for; if it has a name that fits.
    fn comment(&self, word: &str) -> Option<String> {
        let Self::Named(_, name) = self else { return None };
        let ends_comment = name.contains("*/") || name.contains("/*");
        let is_safe = name.len() <= SHOWN && !ends_comment && !name.contains(char::is_control);
        is_safe.then(|| format!("/* {word} {name} */ "))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bigint(key) => key.fmt(f),
            Self::Pair(first, second) => write!(f, "({first}, {second})"),
            Self::Named(_, name) => write!(f, "{name:?}"),
        }
    }
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::named(&name)
    }
}

impl From<&String> for Key {
    fn from(name: &String) -> Self {
        Self::named(name)
    }
}

impl From<i64> for Key {
    fn from(key: i64) -> Self {
        Self::Bigint(key)
    }
}

impl From<(i32, i32)> for Key {
    fn from((first, second): (i32, i32)) -> Self {
        Self::Pair(first, second)
    }
}

impl From<&Key> for Key {
    fn from(key: &Key) -> Self {
        key.clone()
    }
}

/// Acquires a lock that lasts until the transaction ends; false if it is not granted in time. It cannot be released
/// before, except by a ROLLBACK to an earlier savepoint. Works through any pooler.
///
/// With [`Wait::Forever`] the transaction's own `lock_timeout` and `statement_timeout` apply, if it has any. With
/// [`Wait::AtMost`] its `lock_timeout` is replaced during the wait, and a savepoint keeps the transaction usable if the
/// wait fails.
///
/// The connection is the caller's, so a wait that is dropped is not cancelled: the statement continues until the lock is
/// granted or the limit is over. The next statement on the connection waits for it, even if a pool has given the connection
/// to another task. Pass a limit instead of adding a timeout, or cancel the statement with a
/// [`CancelToken`](tokio_postgres::CancelToken).
///
/// ```no_run
/// # use locktop_locks::advisory::{Key, Mode, Wait, xact_lock};
/// # async fn example(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let transaction = client.transaction().await?;
/// if xact_lock(&transaction, Key::Pair(7, 42), Mode::Exclusive, Wait::Never).await? {
///     transaction.batch_execute("UPDATE accounts SET balance = 0").await?;
///     transaction.commit().await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the server refuses, does not answer in time or the connection ends. The transaction can then only be rolled back.
pub async fn xact_lock(
    transaction: &Transaction<'_>,
    key: impl Into<Key>,
    mode: Mode,
    wait: Wait,
) -> Result<bool, Error> {
    let key = key.into();
    let comment = key.comment("lock").filter(|name| name.is_ascii()).unwrap_or_default();
    let call = |function| format!("{comment}SELECT {}", call(function, &key, mode));
    match wait.lock_timeout() {
        None => Ok(ask(transaction, wait.timeout(), &call(XACT_TRY)).await?.as_deref() == Some("t")),
        Some(0) => ask(transaction, wait.timeout(), &call(XACT_LOCK)).await.map(|_| true),
        Some(limit) => at_most(transaction, &call(XACT_LOCK), limit, wait.timeout()).await,
    }
}

/// The setting is restored in the message that changes it, so that nothing remains of it even if the caller does not wait
/// for the answer: the server executes the whole message, or undoes all of it since the savepoint.
async fn at_most(
    transaction: &Transaction<'_>,
    call: &str,
    limit: u32,
    timeout: Option<Duration>,
) -> Result<bool, Error> {
    let setting = "SELECT pg_catalog.current_setting('lock_timeout')";
    let before = ask(transaction, Some(TIMEOUT), setting).await?.unwrap_or_default();
    let before = before.replace('\'', "''");
    let sql = format!(
        "SAVEPOINT locktop_wait; SET LOCAL lock_timeout = {limit}; {call}; SET LOCAL lock_timeout = '{before}'; \
         RELEASE SAVEPOINT locktop_wait"
    );
    match ask(transaction, timeout, &sql).await {
        Ok(_) => Ok(true),
        Err(error) if error.sqlstate() == Some(SqlState::LOCK_NOT_AVAILABLE.code()) => {
            let back = "ROLLBACK TO SAVEPOINT locktop_wait; RELEASE SAVEPOINT locktop_wait";
            ask(transaction, Some(TIMEOUT), back).await?;
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

async fn ask(
    transaction: &Transaction<'_>,
    limit: Option<Duration>,
    sql: &str,
) -> Result<Option<String>, Error> {
    within(limit, sql, source::ask(transaction.client(), sql)).await
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

    #[test]
    fn a_name_is_in_a_comment_only_if_it_cannot_end_it() {
        for name in ["invoice:7", "/jobs/daily", "*", "all *", "/"] {
            assert_eq!(Key::named(name).comment("lock"), Some(format!("/* lock {name} */ ")));
        }
        for name in ["a*/ SELECT 1", "/*", "*/", "a\nb", &"x".repeat(201)] {
            assert_eq!(Key::named(name).comment("lock"), None, "{name}");
        }
        assert_eq!(Key::Bigint(1).comment("lock"), None);
        assert_ne!(Key::named("a").number(), Key::named("b").number());
    }
}
