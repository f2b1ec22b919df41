//! Shared locks, a wait with a limit, several locks at once, and a lock of a transaction.
//!
//! `cargo run -p locktop-locks --example kinds -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::time::Duration;

use locktop_locks::advisory::{Key, Locks, Mode, Wait, xact_lock};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(conninfo: &str) -> Result<(), Box<dyn Error>> {
    let info = ConnInfo::parse(conninfo)?;
    let locks = Locks::new(info.clone());

    let readers = [locks.shared("catalog", Wait::Never).await?, locks.shared("catalog", Wait::Never).await?];
    let writer = locks.try_lock("catalog", Wait::AtMost(Duration::from_millis(50))).await?;
    println!("{} readers, writer: {}", readers.iter().flatten().count(), writer.is_some());
    for reader in readers.into_iter().flatten() {
        reader.release().await?;
    }

    let accounts = [Key::from("account 2"), Key::from("account 1")];
    if let Some(both) = locks.all(&accounts, Wait::Forever).await? {
        println!("both accounts are locked: {} locks", both.held().len());
        both.release().await?;
    }

    let mut connection = connect(&info).await?;
    let transaction = connection.client.transaction().await?;
    if xact_lock(&transaction, "account 1", Mode::Exclusive, Wait::Never).await? {
        println!("locked until the end of the transaction");
    }
    transaction.commit().await?;
    Ok(())
}
