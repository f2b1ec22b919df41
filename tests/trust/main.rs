//! Whose code runs when locktop looks and acts: an ordinary role leaves everything in its tables that a server would evaluate, and
//! whatever is called says so in the server's log, with who it ran as. Nothing may be called unless the role is trusted.
//!
//! What cannot be done by such a role has no test: event triggers, base types with an input or output function of one's own, foreign
//! data wrappers, operator classes and untrusted languages take a superuser; nobody can put anything into another session's
//! `pg_temp`; a virtual generated column (18) refuses functions and types of users.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

#[path = "../support/binary.rs"]
mod binary;
mod changes;
mod commands;
mod dashboard;
mod deeds;
#[path = "../pty/desk.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod desk;
#[path = "../pty/escapes.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod escapes;
mod forged;
mod ground;
mod looks;
mod names;
mod owners;
mod path;
#[path = "../support/pooler.rs"]
mod pooler;
#[path = "../pty/process.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod process;
mod race;
mod rows;
#[path = "../pty/screen.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod screen;
mod shared;
#[path = "../action/stage.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod stage;
mod stored;
#[path = "../support/mod.rs"]
mod support;
