//! Leases on real servers of every version: the SQL, the guard, and holders in processes of their own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]

mod article;
mod crowd;
mod fence;
mod force;
mod guard;
mod holder;
mod paused;
mod place;
#[path = "../support/pooler.rs"]
mod pooler;
mod sql;
#[path = "../support/mod.rs"]
mod support;
