//! Items that each go to one worker. Needs `locktop schema install`.
//!
//! `cargo run -p locktop-tasks --example work_queue -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use locktop_tasks::work_queue::{AttemptEnd, WorkQueue};
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
    let queue = WorkQueue::default();
    queue.add(&client, "mail", &["a@example.org"]).await?;
    while let Some(item) = queue.claim(&client, "worker-1").await? {
        let to: Vec<String> = item.payload()?;
        println!("item {}: a mail to {}", item.id, to.join(", "));
        if !queue.finish(&client, &item, &AttemptEnd::Completed).await? {
            println!("item {} was not ours any more", item.id);
        }
    }
    Ok(())
}
