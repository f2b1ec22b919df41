//! A lock for one holder at a time, as long as its session lasts.
//!
//! `cargo run -p locktop-locks --example advisory -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::time::Duration;

use locktop_locks::advisory::{Locks, Wait};
use pg_connect::conninfo::ConnInfo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(conninfo: &str) -> Result<(), Box<dyn Error>> {
    let locks = Locks::new(ConnInfo::parse(conninfo)?);
    let work = async { println!("this process holds the lock") };
    if locks.with("monthly report", Wait::AtMost(Duration::from_secs(5)), work).await?.is_none() {
        println!("another session holds the lock");
    }
    Ok(())
}
