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
