//! The program's output for real contention on a real server, compared with the server's own functions and
//! with the effects of the actions.
//!
//! With `LOCKTOP_LONG` on every supported version, otherwise on one.
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
mod cancels;
mod catalog;
mod crowd;
#[path = "../support/document.rs"]
mod document;
mod encodings;
mod frees;
mod frozen;
mod garbled;
#[path = "../server/action/stage.rs"]
#[allow(dead_code, reason = "each test program uses a part of it")]
mod hands;
mod incidents;
mod promises;
mod scenarios;
#[path = "../support/mod.rs"]
mod support;
mod truth;

use locktop::demo::postgres::{EmbeddedServer, Options};
use support::is_long;

/// A server for one test alone: it shows only what the test did. Its deadlock check never runs, so that it
/// never reorders a queue during the test.
async fn server(version: Option<u32>) -> EmbeddedServer {
    let options = Options { version, ..Options::default() }
        .with("max_connections", 300)
        .with("max_worker_processes", 24)
        .with("max_parallel_workers", 16)
        .with("deadlock_timeout", "1h");
    EmbeddedServer::start(options).await.unwrap()
}

/// The versions to test on: in the short run the first one that is found.
fn versions() -> Vec<Option<u32>> {
    let all = is_long() || std::env::var_os("LOCKTOP_TEST_VERSIONS").is_some();
    if all { support::versions().into_iter().map(Some).collect() } else { vec![None] }
}
