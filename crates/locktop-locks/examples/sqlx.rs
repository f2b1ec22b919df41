//! A lock on a connection of a pool of sqlx.
//!
//! `cargo run -p locktop-locks --features sqlx --example sqlx -- "postgres:///shop?host=/tmp"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use locktop_locks::advisory::{Locks, Wait};
use sqlx::postgres::PgPoolOptions;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(url: &str) -> Result<(), Box<dyn Error>> {
    let pool = PgPoolOptions::new().max_connections(4).connect(url).await?;
    let locks = Locks::new(pool.clone());
    if let Some(guard) = locks.try_lock("invoice:7", Wait::Never).await? {
        // The connection of the lock runs nothing else.
        sqlx::query("SELECT 1").execute(&pool).await?;
        guard.release().await?;
    }
    println!("{} connections, none of them with a lock", pool.size());
    Ok(())
}
