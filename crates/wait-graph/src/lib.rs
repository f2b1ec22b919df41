//! Who waits for whom in PostgreSQL, from one scan of `pg_locks`: conflicts, queues, roots, what ending somebody frees, and cycles.
//!
//! There is no I/O in here: rows of [`lock`] and [`backend`] go in, a [`WaitGraph`] comes out.

pub mod backend;
mod graph;
pub mod lock;
mod tag;
mod words;

pub use graph::*;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
