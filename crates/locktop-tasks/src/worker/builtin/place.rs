use std::time::Duration;

use tokio_postgres::{Client, Error, SimpleQueryMessage};

use crate::work_session::{Job, Source};
use locktop_base::namespace::{item_statement_number, statement_number};
use pg_connect::connect::{Listening, listen};
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

/// Pause between two attempts: the first and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The advisory lock key of the session that runs the statement of a job.
pub(super) fn key(job: &Job) -> i64 {
    match job.source {
        Source::Tasks => statement_number(job.task_id),
        Source::Queue => item_statement_number(job.task_id),
    }
}

/// A session that may run the statement of a job: it holds the advisory lock without which no worker begins a task or
/// runs the statement of an item. So the statement of a worker that lost the task, and did not notice because it is
/// suspended, does not run at the same time as another worker's.
///
/// Temporary obstacles are waited for, and reported in `why`.
///
/// # Errors
/// If there is no connection and waiting would not help.
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
    // The database may have a limit for idle sessions.
    let _ = connection.client.batch_execute("SET idle_session_timeout = 0").await;
    // Polls instead of waiting: a waiting session would block no other, but would be reported as a lock wait that cannot
    // be shortened.
    while !first(&connection.client, &format!("SELECT pg_catalog.pg_try_advisory_lock({key})"))
        .await
        .map_err(|error| format!("no connection: {}", message(&error)))?
    {
        "the statement of an earlier execution is still running".clone_into(why);
        wait(&mut pause).await;
    }
    Ok(connection)
}

/// Releases the advisory lock; the end of the session does so too, but a moment after the client closes it. Returns
/// whether a transaction was left open: a statement outside of one has the start time of its transaction.
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
