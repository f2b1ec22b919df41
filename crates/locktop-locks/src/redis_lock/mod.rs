//! Locks in Redis: on one server, or as Redlock on a majority of several independent ones.
//!
//! ```no_run
//! use std::time::Duration;
//! use locktop_locks::Held;
//! use locktop_locks::redis_lock::{LockOptions, RedisLocks};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let locks = RedisLocks::connect(&["redis://redis-1", "redis://redis-2", "redis://redis-3"], LockOptions::default())?;
//! let Some(guard) = locks.acquire("lock:report", Duration::from_secs(5)).await? else { return Ok(()) };
//! guard.run(write_the_report()).await?; // stops when the lock is lost: another client may have begun
//! guard.release().await;
//! # Ok(())
//! # }
//! # async fn write_the_report() {}
//! ```
//!
//! # Operation
//!
//! - **Acquiring** is `SET key value NX PX term` with a unique value, sent to all servers at the same time, each with a
//!   short timeout. The lock is held when a majority (N/2 + 1) agreed and `validity = term − elapsed − drift` is above
//!   zero. The drift is 1 % of the term and 2 ms. The time is this machine's time since boot, from before the first
//!   request was sent; no clock setting changes it, and it advances while the machine sleeps. Otherwise the value is
//!   removed from *all* servers, including those that did not answer. One server is the same with N = 1.
//! - **Waiting** ([`RedisLocks::acquire`]) is in order of arrival: the waiters of a key have tickets in the sorted set
//!   `locktop_line:{key}` on the first server of the list, which all clients should name first, and only the client with
//!   the oldest asks for the lock. It asks again when a release is published on `locktop_free:KEY` by any server, and after
//!   a random delay. The order is no part of the lock: a ticket expires soon after its client, and if the first server is
//!   down or does not permit the sorted set, all clients ask after random delays. [`RedisLocks::try_acquire`] does not
//!   wait in line.
//! - **Renewing** is a script that compares before it sets a new term. A background task of the guard does it at a third
//!   of the term, and a renewal counts only when a majority has confirmed it in time.
//! - **Releasing** is a script that compares before it deletes: no client deletes another client's value. It publishes
//!   the release if the user is permitted to.
//! - **Losing** is reported by [`Held::lost`](crate::Held::lost): by the first renewal that finds no majority left (the key was removed or
//!   has another client's value), and at the latest when the last confirmed term ends, even if no server answers.
//! - **Forgetting servers.** A server that restarts without its data may grant the same lock a second time while the
//!   first holder's term still runs. So a server that has been up for less than a term is not asked for a vote
//!   ([`Restarts::StayOut`]): the client reads its uptime once for each connection. All clients of a key must then use
//!   the same longest term.
//!
//! # Limits
//!
//! A holder that is stopped (a paused machine, a swapped-out process) notices the end of its term only when it continues.
//! Check [`Guard::is_held`] right before each step that matters; and if a stale write would do harm, let the resource
//! itself refuse it, with a fencing token, which no lock in Redis provides. A promoted replica may not have the lock: for
//! Redlock use independent servers, not one server and its replicas.
//!
//! It is not reentrant: a second acquisition by the same holder waits like any other. Pass `&Guard` on instead.
//!
//! A guard that is dropped without [`Guard::release`] releases the lock in the background if it is dropped within a tokio
//! runtime; if that fails, the lock ends with its term. It is never renewed after the drop.
//!
//! # Uses
//!
//! **No double submission**: the first client has the key for a term, and the others get `None`.
//!
//! ```no_run
//! # use locktop_locks::{Error, redis_lock::RedisLocks};
//! # async fn place_order() -> u64 { 7 }
//! async fn submit(locks: &RedisLocks, cart: u64) -> Result<Option<u64>, Error> {
//!     // The key names what must not be done twice, not the client: another cart of the same user is another order.
//!     let Some(guard) = locks.try_acquire(&format!("lock:submit:{cart}")).await? else { return Ok(None) };
//!     let order = place_order().await;
//!     guard.keep(); // for the rest of the term: a second click a moment later is refused too
//!     Ok(Some(order))
//! }
//! ```
//!
//! **Exclusive access to a resource**: wait for it, and drop the work when the lock is lost ([`RedisLocks::with`]).
//!
//! ```no_run
//! # use std::time::Duration;
//! # use locktop_locks::{Error, redis_lock::RedisLocks};
//! # async fn print(_page: &str) {}
//! async fn print_alone(locks: &RedisLocks, page: &str) -> Result<Option<()>, Error> {
//!     locks.with("lock:printer", Duration::from_secs(10), print(page)).await
//! }
//! ```
//!
//! **One runner per task**: a client that does not get the lock leaves the task to the one that has it.
//!
//! ```no_run
//! # use locktop_locks::{Error, redis_lock::RedisLocks};
//! # use std::time::Duration;
//! # async fn is_due(_task: u64) -> bool { true }
//! # async fn run(_task: u64) {}
//! async fn run_if_free(locks: &RedisLocks, task: u64) -> Result<bool, Error> {
//!     let work = async {
//!         // Checked again under the lock: the client that had it before may have done the task.
//!         if is_due(task).await {
//!             run(task).await;
//!         }
//!     };
//!     Ok(locks.with(&format!("lock:task:{task}"), Duration::ZERO, work).await?.is_some())
//! }
//! ```

mod guard;
mod member;
mod servers;

use std::time::Duration;

pub use crate::quorum;
pub use guard::{Guard, Released};
pub use servers::RedisLocks;

/// The shortest term: below, most of it would be transmission time.
const SHORTEST_TERM: Duration = Duration::from_millis(100);

/// How a server that has just started is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restarts {
    /// It may have forgotten locks that it granted before, and has no vote until it has been up for a term: by then each of
    /// those has ended. Needs the right to run `INFO`; a server that does not report its uptime has no vote.
    #[default]
    StayOut,
    /// It has all its data (`appendonly yes` and `appendfsync always`), or its operator waits for a term before a restart.
    Trusted,
}

/// Options for acquiring locks: the term, the holder's name, and time limits.
#[derive(Debug, Clone)]
pub struct LockOptions {
    term: Duration,
    timeout: Option<Duration>,
    name: String,
    restarts: Restarts,
    longest_term: Option<Duration>,
    longest_delay: Duration,
}

impl Default for LockOptions {
    /// A term of 10 s.
    fn default() -> Self {
        Self::term(Duration::from_secs(10))
    }
}

impl LockOptions {
    /// How long a lock outlives its holder: the other clients wait this long when a holder dies. At least 100 ms.
    #[must_use]
    pub fn term(term: Duration) -> Self {
        Self {
            term,
            timeout: None,
            name: String::new(),
            restarts: Restarts::StayOut,
            longest_term: None,
            longest_delay: Duration::from_millis(200),
        }
    }

    /// The time limit for one server's answer; by default a twentieth of the term, at least 50 ms and at most 1 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The holder's name, for people who read the value: `name:` and a random part.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// How a server that has just started is treated.
    #[must_use]
    pub fn restarts(self, restarts: Restarts) -> Self {
        Self { restarts, ..self }
    }

    /// The longest term that any client uses for these keys, if it is longer than this client's.
    #[must_use]
    pub fn longest_term(self, longest: Duration) -> Self {
        Self { longest_term: Some(longest), ..self }
    }

    /// The longest delay between two attempts without a release in between; each delay is random.
    #[must_use]
    pub fn longest_delay(self, longest: Duration) -> Self {
        Self { longest_delay: longest, ..self }
    }

    fn server_timeout(&self) -> Duration {
        let part = (self.term / 20).clamp(Duration::from_millis(50), Duration::from_secs(1));
        self.timeout.unwrap_or(part)
    }

    /// How long a place in line counts after its client was last heard: it asks after each delay, and between two delays up to
    /// three answers may take their time.
    fn ticket(&self) -> Duration {
        let pause = self.longest_delay.saturating_add(self.server_timeout().saturating_mul(2));
        pause.saturating_mul(2).saturating_add(Duration::from_secs(1))
    }

    /// How long a server has no vote after its start.
    fn quarantine(&self) -> Option<Duration> {
        let longest = self.longest_term.unwrap_or_default().max(self.term);
        (self.restarts == Restarts::StayOut).then_some(longest + drift(longest))
    }
}

/// The possible difference between the clocks of two machines over a term, and the resolution of Redis, which is
/// milliseconds: 1 % and 2 ms (<https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>).
fn drift(term: Duration) -> Duration {
    term / 100 + Duration::from_millis(2)
}

/// The rest of a term that was requested `elapsed` ago; `None` if nothing is left.
fn validity(term: Duration, elapsed: Duration) -> Option<Duration> {
    term.checked_sub(elapsed)?.checked_sub(drift(term)).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_valid_for_less_than_it_lasts() {
        let ms = Duration::from_millis;
        assert_eq!(validity(ms(10_000), ms(0)), Some(ms(9_898)));
        assert_eq!(validity(ms(10_000), ms(9_000)), Some(ms(898)));
        assert_eq!(validity(ms(10_000), ms(9_898)), None);
        assert_eq!(validity(ms(10_000), ms(9_899)), None);
        assert_eq!(validity(ms(10_000), ms(20_000)), None);
    }

    #[test]
    fn a_server_has_a_part_of_the_term_to_answer() {
        let timeout = |term| LockOptions::term(Duration::from_millis(term)).server_timeout().as_millis();
        assert_eq!((timeout(100), timeout(10_000), timeout(600_000)), (50, 500, 1000));
    }

    #[test]
    fn a_restarted_server_stays_out_for_the_longest_term() {
        let options = LockOptions::term(Duration::from_secs(10));
        assert_eq!(options.quarantine(), Some(Duration::from_millis(10_102)));
        assert_eq!(
            options.clone().longest_term(Duration::from_secs(100)).quarantine(),
            Some(Duration::from_millis(101_002))
        );
        assert_eq!(options.restarts(Restarts::Trusted).quarantine(), None);
    }
}
