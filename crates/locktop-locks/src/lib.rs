//! Lock systems on PostgreSQL and Redis, each usable on its own: nothing in this crate depends on a terminal, a
//! configuration or a command line.
//!
//! - [`advisory`]: the server's advisory locks, of a session or of a transaction.
//! - [`lease`]: locks that expire, with tokens to fence the writes of their holders.
//! - [`pooler`]: whether a session lock can be held at all on a connection.
//! - [`call`]: calls of the functions of locktop's schema, for `locktop-tasks`.
//! - `redis_lock` and its client `redis`, with the feature `redis`: locks in Redis, on one server or on a majority of several.
//!
//! A lease uses a table and functions that `locktop schema install` or `locktop_tasks::schema::install` creates, in the schema
//! of a [`SchemaName`].
#![warn(missing_docs)]

pub mod advisory;
pub mod call;
mod error;
mod held;
pub mod lease;
pub mod pooler;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
pub mod redis_lock;

pub use call::{NameError, SchemaName};
pub use error::{Error, Lost, PoolerError, Refusal};
pub use held::{Held, Run};
pub use locktop_base::LockKey;
pub use pg_connect;

/// The majority of N servers: N/2 + 1.
#[must_use]
pub const fn quorum(servers: u32) -> u32 {
    servers / 2 + 1
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
