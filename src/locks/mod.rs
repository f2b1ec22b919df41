//! Locks over PostgreSQL, each system a library of its own right: nothing in here knows of a terminal, a config or a
//! command line.
//!
//! - [`advisory`]: the server's advisory locks, of a session or of a transaction.
//! - [`lease`]: locks that end by themselves, with tokens to fence what their holders write.
//! - [`scheduled_task`]: the session of a worker that takes tasks, and holds a lock for each while it runs it.
//! - [`pooler`]: whether a session lock can be held here at all.

pub mod advisory;
pub mod lease;
pub mod pooler;
pub mod scheduled_task;
