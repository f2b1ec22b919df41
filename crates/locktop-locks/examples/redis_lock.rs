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
    let work = async { println!("this client holds the lock") };
    if locks.with("lock:report", Duration::from_secs(5), work).await?.is_none() {
        println!("another client holds the lock");
    }
    Ok(())
}
