//! A wait with a limit.
//!
//! `cargo run -p locktop-locks --example wait -- "host=/tmp dbname=shop"`
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
    let holder = locks.lock("import").await?;
    match locks.try_lock("import", Wait::AtMost(Duration::from_millis(50))).await? {
        Some(_) => println!("locked"),
        None => println!("not granted within 50 ms"),
    }
    holder.release().await?;
    Ok(())
}
