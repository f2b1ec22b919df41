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
mod command;
#[path = "../schema/db.rs"]
mod db;
#[path = "../support/document.rs"]
mod document;
#[path = "../pty/escapes.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod escapes;
mod library;
mod pooled;
#[path = "../support/pooler.rs"]
mod pooler;
#[path = "../pty/process.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod process;
mod prompt;
mod record;
mod refused;
mod restart;
mod rights;
#[path = "../pty/screen.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod screen;
mod siblings;
mod stage;
mod standby;
#[path = "../support/mod.rs"]
mod support;
