//! A scheduler that runs in one of several processes: if that one ends, another takes over.
//!
//! `cargo run -p locktop-locks --example leader -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::time::Duration;

use locktop_locks::advisory::Locks;
use pg_connect::conninfo::ConnInfo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server refuses the login or the lock.
pub async fn run(conninfo: &str) -> Result<(), Box<dyn Error>> {
    let locks = Locks::new(ConnInfo::parse(conninfo)?);
    let schedule = async || {
        for tick in 1..=3 {
            println!("tick {tick}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // A program would stop at a signal.
    let stop = tokio::time::sleep(Duration::from_secs(30));
    locks.lead("scheduler", stop, schedule).await?;
    Ok(())
}
