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

mod claim;
mod guard;
mod line;
mod member;
mod options;
mod servers;

pub use crate::quorum;
pub use guard::{Guard, Released};
pub use options::{LockOptions, Restarts};
pub use servers::RedisLocks;
