//! Recovery as a library and as a command, on real servers: what is planned, what is done, and above all what is not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]

#[path = "../schema/db.rs"]
mod db;
mod library;
mod stage;
#[path = "../support/mod.rs"]
mod support;
