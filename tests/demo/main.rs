//! Workers that compete for tasks, as real processes: killed, stopped and cut off, and what the witness says of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]

mod contests;
mod crash;
mod ends;
mod forged;
mod headless;
mod play;
mod recipe;
mod stall;
#[path = "../support/mod.rs"]
mod support;
mod url;
