//! Tests on real servers. Each module is a suite with servers of its own, as described in
//! `support/servers.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]
#![allow(clippy::duplicate_mod, reason = "each suite includes the modules that lead to its servers")]

mod action;
mod adapters;
mod advisory;
#[path = "../support/binary.rs"]
mod binary;
mod connect;
#[path = "../terminal/pty/dashboard.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod dashboard;
#[path = "../support/document.rs"]
mod document;
mod embedded;
#[path = "../terminal/pty/escapes.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod escapes;
#[path = "../support/faults.rs"]
mod faults;
mod learned;
mod lease;
mod lock_of;
mod locks_sql;
mod object_names;
mod poll;
#[path = "../support/pooler.rs"]
mod pooler;
#[path = "../terminal/pty/process.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod process;
mod recover;
mod scenarios;
mod schema;
#[path = "../terminal/pty/screen.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod screen;
mod servers;
#[path = "../support/shapes.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod shapes;
mod statements;
#[path = "../support/mod.rs"]
mod support;
mod systems;
mod tasks;
mod trust;
pub(crate) mod unread;
mod wait_events;
mod worker;
