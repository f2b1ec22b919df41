//! Which sessions block which in PostgreSQL, from one scan of `pg_locks`: conflicts, queues, roots, the effect of
//! ending a session, and cycles.
//!
//! There is no I/O: rows of [`lock`] and [`backend`] go in, a [`WaitGraph`] comes out.
#![warn(missing_docs)]

pub mod backend;
mod graph;
pub mod lock;
mod tag;

pub use graph::*;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
