//! Lock systems, each a library of its own right: nothing in here knows of a terminal, a config or a command line.
//!
//! - [`advisory`]: the server's advisory locks, of a session or of a transaction.
//! - [`lease`]: locks that end by themselves, with tokens to fence what their holders write.
//! - [`scheduled_task`]: tasks that one of many workers runs when their time comes.
//! - [`work_session`]: the session of a worker that takes tasks and items, and holds a lock for each while it works on it.
//! - [`work_queue`]: items that each go to one worker at a time.
//! - [`rate_limit`]: so many requests in a window.
//! - [`snowflake`]: ids that grow with time.
//! - [`optimistic`]: write only what has not changed since it was read.
//! - [`pooler`]: whether a session lock can be held here at all.
//! - [`redis_lock`]: locks in Redis, on one server or on a majority of several.

pub mod advisory;
pub mod call;
pub mod lease;
pub mod optimistic;
pub mod pooler;
pub mod rate_limit;
pub mod redis_lock;
pub mod scheduled_task;
pub mod snowflake;
pub mod work_queue;
pub mod work_session;
