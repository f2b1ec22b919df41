//! A lock on a connection of a pool of deadpool.
//!
//! `cargo run -p locktop-locks --features deadpool --example deadpool -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use deadpool_postgres::{Manager, Pool};
use locktop_locks::advisory::{Locks, Wait};
use tokio_postgres::NoTls;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(conninfo: &str) -> Result<(), Box<dyn Error>> {
    let pool = Pool::builder(Manager::new(conninfo.parse()?, NoTls)).max_size(4).build()?;
    let locks = Locks::new(pool.clone());
    if let Some(guard) = locks.try_lock("invoice:7", Wait::Never).await? {
        // The connection of the lock runs nothing else.
        let client = pool.get().await?;
        client.simple_query("SELECT 1").await?;
        guard.release().await?;
    }
    println!("{} connections, none of them with a lock", pool.status().size);
    Ok(())
}
