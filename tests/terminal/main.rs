//! The program itself: as a command, as the demo with processes of its own, and in a terminal. Each module is a suite with
//! servers of its own; `support/servers.rs` says how.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]
#![allow(clippy::duplicate_mod, reason = "what leads to the servers of a suite is in each suite")]

#[path = "../support/binary.rs"]
mod binary;
mod cli;
mod demo;
#[path = "../support/document.rs"]
mod document;
mod manual;
#[path = "../support/pooler.rs"]
mod pooler;
#[path = "../support/proxy.rs"]
mod proxy;
mod pty;
#[path = "../support/mod.rs"]
mod support;
