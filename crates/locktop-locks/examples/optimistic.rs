//! Moves money only if nothing has changed since it was read. Needs `locktop schema install` and two accounts.
//!
//! `cargo run -p locktop-locks --example optimistic -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use locktop_locks::optimistic::{Accounts, Cents};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(conninfo: &str) -> Result<(), Box<dyn Error>> {
    let client = connect(&ConnInfo::parse(conninfo)?).await?.client;
    let accounts = Accounts::default();
    let attempt = accounts.transfer(&client, 1, 2, Cents(12_50), 3).await?;
    println!("12.50 moved in attempt {attempt}");
    Ok(())
}
