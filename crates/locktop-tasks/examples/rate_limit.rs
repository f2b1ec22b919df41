//! A limited number of requests in a window. Needs `locktop schema install`.
//!
//! `cargo run -p locktop-tasks --example rate_limit -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use locktop_tasks::rate_limit::RateLimit;
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
    let limit = RateLimit::new(2, 60);
    for request in 1..=3 {
        let decision = limit.take(&client, "user:123:api").await?;
        println!("request {request} is {}", if decision.allowed { "let through" } else { "one too many" });
    }
    Ok(())
}
