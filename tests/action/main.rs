//! What the executor does to real servers, and above all what it does not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

mod blocks;
mod crowded;
mod encodings;
mod identity;
mod pooled;
#[path = "../support/pooler.rs"]
mod pooler;
mod redis;
mod rights;
mod slow;
mod stage;
mod steps;
mod successor;
#[path = "../support/mod.rs"]
mod support;
mod tables;
mod tcp;
