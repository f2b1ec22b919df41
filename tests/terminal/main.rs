//! The program itself: as a command, as the demo with its own processes, and in a terminal. Each module is a
//! suite with its own servers (`support/servers.rs`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]
#![allow(clippy::duplicate_mod, reason = "each suite has its own servers")]

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
