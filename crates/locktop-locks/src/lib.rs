//! Lock systems on PostgreSQL and Redis, each usable on its own: nothing in this crate depends on a terminal, a
//! configuration or a command line.
//!
//! - [`advisory`]: the server's advisory locks, of a session or of a transaction.
//! - [`lease`]: locks that expire, with tokens to fence the writes of their holders.
//! - [`scheduled_task`]: tasks that one of many workers runs when they are due.
//! - [`work_queue`]: items that each go to one worker at a time.
//! - [`rate_limit`]: a maximum number of requests in a window.
//! - [`snowflake`]: ids that grow with time.
//! - [`optimistic`]: writes only if nothing has changed since the read.
//! - [`pooler`]: whether a session lock can be held at all on a connection.
//! - `redis_lock`, with the feature `redis`: locks in Redis, on one server or on a majority of several.
//!
//! All but [`advisory`], [`pooler`] and `redis_lock` use tables and functions that `locktop schema install` creates, in
//! the schema of a [`SchemaName`]; they are the feature `tables`, which is on by default.

pub mod advisory;
#[cfg(feature = "tables")]
pub mod call;
mod held;
#[cfg(feature = "tables")]
pub mod lease;
#[cfg(feature = "tables")]
pub mod optimistic;
pub mod pooler;
#[cfg(feature = "tables")]
pub mod rate_limit;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
pub mod redis_lock;
#[cfg(feature = "tables")]
pub mod scheduled_task;
#[cfg(feature = "tables")]
mod schema_name;
#[cfg(feature = "tables")]
pub mod snowflake;
#[cfg(feature = "tables")]
pub mod work_queue;

pub use locktop_base::LockKey;
pub use pg_connect;
#[cfg(feature = "tables")]
pub use schema_name::{NameError, SchemaName};

/// The majority of N servers: N/2 + 1.
#[must_use]
pub const fn quorum(servers: u32) -> u32 {
    servers / 2 + 1
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
