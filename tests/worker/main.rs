//! The worker on real servers: that what is due is run once, that work stops when its lock is lost, and that nothing is left behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]

#[path = "../support/binary.rs"]
mod binary;
mod crowd;
#[path = "../schema/db.rs"]
mod db;
mod due;
mod hand;
mod log;
mod loss;
mod named;
mod opens;
mod pooled;
#[path = "../support/pooler.rs"]
mod pooler;
mod process;
mod programs;
mod queue;
mod rest;
mod runs;
mod signals;
mod statement;
#[path = "../support/mod.rs"]
mod support;
mod suspend;
mod types;
