//! The program as a person or a script meets it: what it prints where, and with what exit status.
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
#[path = "../support/document.rs"]
mod document;
mod prints;
mod refused;
mod rights;
mod schema;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod waits;
