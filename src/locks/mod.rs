//! Lock systems, each a library of its own.

pub mod redis_lock;
