//! A lock that lasts until the end of a transaction.
//!
//! `cargo run -p locktop-locks --example transaction -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use locktop_locks::advisory::{Mode, Wait, xact_lock};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(conninfo: &str) -> Result<(), Box<dyn Error>> {
    let mut connection = connect(&ConnInfo::parse(conninfo)?).await?;
    let transaction = connection.client.transaction().await?;
    if xact_lock(&transaction, "account 1", Mode::Exclusive, Wait::Never).await? {
        println!("locked until the end of the transaction");
    }
    transaction.commit().await?;
    Ok(())
}
