//! At most two of four tasks at the same time.
//!
//! `cargo run -p locktop-locks --example semaphore -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::time::Duration;

use futures_util::future::try_join_all;
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
    let task = async |number: u32| -> Result<(), locktop_locks::Error> {
        let Some(permit) = locks.permit("exports", 2, Wait::AtMost(Duration::from_secs(30))).await? else {
            println!("{number}: no permit within 30 s");
            return Ok(());
        };
        println!("{number}: exports");
        permit.release().await
    };
    try_join_all((1..=4).map(task)).await?;
    Ok(())
}
