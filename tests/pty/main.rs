//! The real program in a real pseudo terminal, before a real server, seen through a terminal emulator.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may"
)]

#[path = "../support/mod.rs"]
mod support;

mod act;
mod colours;
mod demo;
mod desk;
mod escapes;
mod events;
mod harmless;
mod hostile;
mod in_flight;
mod incident;
mod mouse;
mod outage;
mod panic;
mod picture;
mod pool;
#[path = "../support/pooler.rs"]
mod pooler;
mod process;
mod redis;
mod rights;
mod screen;
mod shell;
mod shop;
mod signals;
mod size;
mod start;
mod suspend;
mod tour;
mod verbs;
