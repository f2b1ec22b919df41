//! A lock for one holder at a time, as long as its session lasts.
//!
//! `cargo run -p locktop-locks --example advisory -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use std::time::Duration;

use locktop_locks::advisory::{Acquired, Key, Mode, Session, SessionLock, Wait};
use pg_connect::conninfo::ConnInfo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().nth(1).unwrap_or_default()).await
}

/// # Errors
/// If the server or the connection reports an error.
pub async fn run(conninfo: &str) -> Result<(), Box<dyn Error>> {
    let session = Session::open(&ConnInfo::parse(conninfo)?).await?;
    let key = Key::Bigint(10_001);
    match SessionLock::acquire(session, key, Mode::Exclusive, Wait::AtMost(Duration::from_secs(5))).await? {
        Acquired::Busy(_) => println!("somebody else has it"),
        Acquired::Held(lock) => {
            println!("we are the only one");
            lock.release().await?;
        }
    }
    Ok(())
}
