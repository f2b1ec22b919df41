//! A lock that expires, and a write that counts only while the lease is held. Needs `locktop schema install`.
//!
//! `cargo run -p locktop-locks --example lease -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use std::time::Duration;

use locktop_locks::lease::{Lease, Request};
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
    let mut client = connect(&info).await?.client;
    let Some(lease) =
        Lease::acquire(&info, &Request::new("report", "node1", Duration::from_secs(30))).await?
    else {
        println!("another node has it");
        return Ok(());
    };
    let transaction = client.transaction().await?;
    lease.fence(&transaction).await?;
    // Anything written here is undone if the lease is no longer held.
    transaction.commit().await?;
    println!("written under the lease; released: {}", lease.release().await?);
    Ok(())
}
