//! A task that one of several processes runs, and runs once. Needs `locktop schema install`.
//!
//! `cargo run -p locktop-tasks --example once -- "host=/tmp dbname=shop"`
#![allow(missing_docs, clippy::print_stdout, reason = "an example")]

use std::error::Error;

use locktop_tasks::scheduled_task::ScheduledTasks;
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
    let tasks = ScheduledTasks::default();
    let worker = format!("process {}", std::process::id());
    for run in tasks.fetch(&client, &worker, 1).await? {
        println!("{worker} runs {}", run.name);
        tasks.finish(&client, &run, Ok(())).await?;
    }
    Ok(())
}
