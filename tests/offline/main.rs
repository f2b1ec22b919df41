//! What needs no server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    reason = "a test may"
)]

mod architecture;
mod config;
mod cycles;
mod fuzz;
mod monitoring;
mod proto;
mod text_on_screen;
