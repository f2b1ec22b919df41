//! Ids that grow with time and are never repeated. Needs `locktop schema install`.
//!
//! `cargo run -p locktop-tasks --example ids -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use locktop_tasks::snowflake::Generator;
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
    let generator = Generator::new(1)?;
    generator.register(&client).await?;
    let (first, second) = (generator.next(&client).await?, generator.next(&client).await?);
    println!("worker {} gave two, and they grow: {}", first.worker(), first < second);
    Ok(())
}
