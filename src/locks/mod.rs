//! Lock systems, each a library of its own right: nothing in here knows of a terminal, a config or a command line.
//!
//! - [`scheduled_task`]: the session of a worker that takes tasks, and holds a lock for each while it runs it.
//! - [`pooler`]: whether a session lock can be held here at all.
//! - [`redis_lock`]: locks in Redis, on one server or on a majority of several.

pub mod pooler;
pub mod redis_lock;
pub mod scheduled_task;
