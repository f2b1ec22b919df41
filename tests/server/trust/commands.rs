//! Every subcommand that connects.

use std::io::Read;
use std::process::Stdio;

use super::binary::{Left, finish, locktop};
use super::ground::{Ground, WATCHERS, one_version};
use super::snapshots::command;
use super::support::wait_until;

/// Subcommands that end on their own.
const COMMANDS: [&[&str]; 8] = [
    &["snapshot"],
    &["adapters", "list"],
    &["recover", "--dry-run"],
    &["recover", "--yes"],
    &["schema", "status"],
    &["schema", "install"],
    &["schema", "purge", "--keep", "1d", "--yes"],
    &["schema", "drop", "--yes"],
];

/// Runs all of them, and a worker: nothing is called. Returns the result of each.
pub(crate) async fn every_command(ground: &Ground, role: &str) -> Vec<(String, Left)> {
    let mut all = Vec::new();
    for arguments in COMMANDS {
        let (name, left) = (arguments.join(" "), command(ground, role, arguments).await);
        ground.is_clean(&format!("{role}, {name}: {left:?}"));
        all.push((name, left));
    }
    let left = worker(ground, role).await;
    ground.is_clean(&format!("{role}, worker: {left:?}"));
    all.push(("worker".to_owned(), left));
    all
}

/// A worker that is asked to end once it has polled for work, unless it ends before that.
pub(crate) async fn worker(ground: &Ground, role: &str) -> Left {
    let target = ground.target(role);
    let mut command = locktop(&["-w", "worker", "--id", "x", "--exit-with-stdin", &target]);
    let mut log = tempfile::NamedTempFile::new().unwrap();
    command.stdin(Stdio::piped()).stderr(log.reopen().unwrap());
    let mut child = command.spawn().unwrap();
    let observer = ground.client("postgres").await;
    let mut log_text = String::new();
    // A worker asked to end before it has opened its session exits with 0 and has read nothing. This one
    // listens, and queries the due work.
    let sql = format!(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = '{}' AND usename = '{role}' AND state = 'idle'
            AND query_start < clock_timestamp() - interval '300 ms')",
        ground.name()
    );
    wait_until("the worker to wait for work, or to end", async || {
        log.read_to_string(&mut log_text).unwrap();
        child.try_wait().unwrap().is_some()
            || !ground.calls().is_empty()
            || log_text.contains("connected") && observer.query_one(&sql, &[]).await.unwrap().get(0)
    })
    .await;
    drop(child.stdin.take());
    let left = tokio::task::spawn_blocking(move || finish(child, "the worker")).await.unwrap();
    log.read_to_string(&mut log_text).unwrap();
    Left { err: log_text, ..left }
}

#[tokio::test]
async fn no_command_runs_code_stored_with_tables() {
    for version in one_version() {
        let ground = super::stored::trapped(version).await;
        for role in WATCHERS {
            every_command(&ground, role).await;
        }
    }
}
