//! Any number of readers, or one writer.
//!
//! `cargo run -p locktop-locks --example shared -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

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
    let readers = [locks.shared("catalog", Wait::Never).await?, locks.shared("catalog", Wait::Never).await?];
    let writer = locks.try_lock("catalog", Wait::Never).await?;
    println!("{} readers, writer: {}", readers.iter().flatten().count(), writer.is_some());
    for reader in readers.into_iter().flatten() {
        reader.release().await?;
    }
    Ok(())
}
