//! Advisory locks on real servers of every version, and behind a real pooler.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]

mod functions;
mod look;
mod loss;
mod pooled;
#[path = "../support/pooler.rs"]
mod pooler;
mod rules;
mod silent;
mod stack;
#[path = "../support/mod.rs"]
mod support;
mod wait;
