//! Lock systems, each a library of its own right: those of [`locktop_locks`], and
//!
//! - [`work_session`]: the session of a worker that takes tasks and items, and holds a lock for each while it works on it.

pub use locktop_locks::*;

pub mod work_session;
