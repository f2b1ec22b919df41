//! The poll against real servers of every supported version: what it sees, what it survives, and what it says when it
//! fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

#[path = "../support/mod.rs"]
mod support;

mod backends;
mod catalogs;
mod feed;
mod helpers;
mod known;
mod locks;
mod loss;
mod patience;
mod raw;
mod rights;
mod settings;
mod setup;
mod signals;
mod snapshot;
mod text;
mod views;
