//! The printed text, in databases of its own.

use super::db::Session;
use super::support::{database, server_of, wait_until};

const TEXT: &str = include_str!("article.sql");

pub(crate) fn block(name: &str) -> &'static str {
    TEXT.split("--@ ").find_map(|block| block.strip_prefix(name)?.strip_prefix('\n')).unwrap()
}

/// A name shared by a column and an output parameter means the column: the smallest change that makes a
/// function run.
pub(crate) fn repaired(name: &str) -> String {
    block(name).replace("AS $$\n", "AS $$\n#variable_conflict use_column\n")
}

/// Two sessions in a new database in which this was run.
pub(crate) async fn printed(version: u32, blocks: &[&str]) -> (Session, Session) {
    let info = database(server_of(version).await).await;
    let first = Session::open_plain(&info).await;
    for sql in blocks {
        first.run(sql).await;
    }
    (first, Session::open_plain(&info).await)
}

/// How many advisory locks a session has.
pub(crate) async fn keys(watcher: &Session, pid: i32) -> String {
    watcher
        .ask(&format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = {pid}"
        ))
        .await
}

/// Until a session waits for a lock of another.
pub(crate) async fn blocked(watcher: &Session, pid: i32) {
    let waits = format!("SELECT cardinality(pg_blocking_pids({pid})) > 0");
    wait_until("the other to wait", async || watcher.ask(&waits).await == "t").await;
}

/// Terminates a session, and waits until it has ended.
pub(crate) async fn end(watcher: &Session, pid: i32) {
    watcher.ask(&format!("SELECT pg_terminate_backend({pid})")).await;
    let count = format!("SELECT count(*) FROM pg_stat_get_activity({pid})");
    wait_until("the session to end", async || watcher.ask(&count).await == "0").await;
}
