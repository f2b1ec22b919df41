//! Several locks at once, or none of them.
//!
//! `cargo run -p locktop-locks --example several -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use locktop_locks::advisory::{Key, Locks, Wait};
use pg_connect::conninfo::ConnInfo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(conninfo: &str) -> Result<(), Box<dyn Error>> {
    let locks = Locks::new(ConnInfo::parse(conninfo)?);
    let accounts = [Key::from("account 2"), Key::from("account 1")];
    if let Some(both) = locks.all(&accounts, Wait::Forever).await? {
        println!("both accounts are locked: {} locks", both.held().len());
        both.release().await?;
    }
    Ok(())
}
