//! What needs no server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]

mod architecture;
mod config;
mod proto;
mod text_on_screen;
