//! locktop.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test may"
    )
)]

#[cfg(test)]
extern crate self as locktop;

#[cfg(test)]
#[allow(
    unreachable_pub,
    missing_docs,
    dead_code,
    clippy::pedantic,
    reason = "shared with the benches, where it is a crate's"
)]
#[path = "../benches/support/sample.rs"]
mod sample;

pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod demo;
pub mod feed;
pub mod keys;
pub mod model;
pub mod pg;
pub mod runtime;
pub mod text;
pub mod ui;
pub mod wire;
