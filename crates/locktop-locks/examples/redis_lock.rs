//! A lock in Redis, on one server or on a majority of several.
//!
//! `cargo run -p locktop-locks --features redis --example redis_lock -- redis://127.0.0.1`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::time::Duration;

use locktop_locks::redis_lock::{LockOptions, RedisLocks};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    run(&urls.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(urls: &[&str]) -> Result<(), Box<dyn Error>> {
    let locks = RedisLocks::connect(urls, LockOptions::default())?;
    let mut guard = locks.acquire("lock:report", Duration::from_secs(5)).await?;
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(10)) => println!("the work is done"),
        // Stop at once: another client may have begun.
        lost = guard.lost() => return Err(lost.into()),
    }
    guard.release().await;
    Ok(())
}
