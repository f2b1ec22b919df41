//! Recovery as a library and as a command, on real servers: what is planned, what is done, and above all what is not.
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
#[path = "../schema/db.rs"]
mod db;
#[path = "../support/document.rs"]
mod document;
mod library;
mod refused;
mod restart;
mod rights;
mod stage;
mod standby;
#[path = "../support/mod.rs"]
mod support;
