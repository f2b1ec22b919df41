//! A session for a statement.

use std::time::Duration;

use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::work_session::{Job, Source};
use locktop_base::namespace::{item_statement_number, statement_number};
use pg_connect::connect::{Listening, listen};
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

/// Between two attempts to get what others have: the first and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The key that the session holds which runs the statement of a job.
pub(super) fn key(job: &Job) -> i64 {
    match job.source {
        Source::Tasks => statement_number(job.task_id),
        Source::Queue => item_statement_number(job.task_id),
    }
}

/// A session that may run the statement of a job: it holds the key without which nobody begins a task or runs the statement of an item. So the statement of a worker
/// that lost the task, and does not know because it is suspended, does not run beside another's.
///
/// What may pass is waited for, and told in `why`.
///
/// # Errors
/// When there is no connection and waiting would not help.
pub(super) async fn open(info: &ConnInfo, key: i64, why: &mut String) -> Result<Listening, String> {
    let mut pause = PAUSE.0;
    let connection = loop {
        match listen(info).await {
            Ok(connection) => break connection,
            Err(error) if error.is_waitable() => *why = format!("no connection: {error}"),
            Err(error) => return Err(format!("no connection: {error}")),
        }
        wait(&mut pause).await;
    };
    // The database may have a limit for sessions that wait.
    let _ = connection.client.batch_execute("SET idle_session_timeout = 0").await;
    // Tried and not waited for: who waits for a lock is in the way of nobody, but is seen to wait for what cannot be hurried.
    while !first(&connection.client, &format!("SELECT pg_catalog.pg_try_advisory_lock({key})"))
        .await
        .map_err(|error| format!("no connection: {}", message(&error)))?
    {
        "the statement of an earlier execution is still running".clone_into(why);
        wait(&mut pause).await;
    }
    Ok(connection)
}

/// Gives the key back; the end of the session does so as well, a moment later than it is told. Says whether a transaction was left open:
/// a statement that is one by itself began when it was sent.
pub(super) async fn close(client: &Client, key: i64) -> Result<bool, Error> {
    let sql = format!(
        "SELECT pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() FROM pg_catalog.pg_advisory_unlock({key})"
    );
    first(client, &sql).await
}

async fn wait(pause: &mut Duration) {
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(PAUSE.1);
}

async fn first(client: &Client, sql: &str) -> Result<bool, Error> {
    let answer = client.simple_query(sql).await?;
    Ok(answer
        .iter()
        .any(|part| matches!(part, SimpleQueryMessage::Row(row) if matches!(row.try_get(0), Ok(Some("t"))))))
}
