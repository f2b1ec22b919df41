use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::{Job, Source, WorkError, timed_out};
use crate::worker::stop::Stop;
use locktop_base::clock;
use locktop_base::namespace::{item_statement_number, statement_number};
use pg_connect::connect::{Listening, listen};
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

/// Pause between two attempts: the first and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Time limit for the cancel request and the end of the statement.
const CANCEL: Duration = Duration::from_secs(2);
/// The server's own limit comes first; if it has no effect, the statement is cancelled this much later.
const MARGIN: Duration = Duration::from_secs(1);
/// Most characters of the server's detail and hint in an error.
const MORE: usize = 1000;

/// `BEGIN` has no effect in a task, contrary to what its author expects.
const LEFT_OPEN: &str = "the statement left a transaction open, which was rolled back: a task cannot use BEGIN, because its one \
    statement is a transaction";
/// The driver's error for a `COPY` that it did not request; it has no kind to match on.
const UNEXPECTED: &str = "unexpected message from server";

/// Runs it on a connection of its own. The statement does not outlive this future: it is cancelled, then the connection
/// is closed, and the server checks the connection every second.
pub(super) async fn run(
    info: &ConnInfo,
    key: i64,
    statement: &str,
    limit: Duration,
    stop: &Stop,
) -> Result<(), WorkError> {
    let (began, mut why) = (clock::monotonic(), String::new());
    let opened = tokio::select! {
        biased;
        reason = stop.stopped() => return Err(WorkError::Stopped(reason)),
        opened = tokio::time::timeout(limit, open(info, key, &mut why)) => opened,
    };
    let connection = match opened {
        Ok(opened) => opened.map_err(WorkError::Failed)?,
        Err(_) if why.is_empty() => return Err(WorkError::Failed(timed_out(limit))),
        Err(_) => return Err(WorkError::Failed(format!("{} before it started: {why}", timed_out(limit)))),
    };
    let guard = Guard(Some(connection));
    let Some(connection) = &guard.0 else { return Ok(()) };
    let outcome = attend(connection, key, statement, Limit { began, limit }, stop).await;
    guard.ended().await;
    outcome
}

#[derive(Clone, Copy)]
struct Limit {
    began: Instant,
    limit: Duration,
}

impl Limit {
    fn left(self) -> Duration {
        self.limit.saturating_sub(self.began.elapsed())
    }

    /// By the client's clock; the server's clock, which ends the statement, may be a little faster.
    fn is_over(self) -> bool {
        self.left() <= self.limit / 1000
    }
}

async fn attend(
    connection: &Listening,
    key: i64,
    statement: &str,
    limit: Limit,
    stop: &Stop,
) -> Result<(), WorkError> {
    let Listening { client, canceller, .. } = connection;
    let mut work = std::pin::pin!(execute(client, statement, limit.left()));
    let outcome = tokio::select! {
        biased;
        reason = stop.stopped() => WorkError::Stopped(reason),
        done = &mut work => return end(connection, key, done, limit).await,
        () = tokio::time::sleep(limit.left().saturating_add(MARGIN)) => WorkError::Failed(timed_out(limit.limit)),
    };
    canceller.cancel(CANCEL).await;
    // Wait for its end, if the server reacts: only then is it certain that the statement has no further effect.
    match tokio::time::timeout(CANCEL, work).await {
        // The statement was faster than the cancellation.
        Ok(Ok(())) => Ok(()),
        _ => Err(outcome),
    }
}

async fn end(
    connection: &Listening,
    key: i64,
    done: Result<(), Error>,
    limit: Limit,
) -> Result<(), WorkError> {
    let over = limit.is_over();
    if done.as_ref().is_err_and(|error| error.as_db_error().is_none()) {
        // The driver did not understand the answer: the statement may still be running.
        connection.canceller.cancel(CANCEL).await;
    }
    let open = release(&connection.client, key).await;
    let reason = match done {
        Ok(()) if open => LEFT_OPEN.to_owned(),
        Ok(()) => return Ok(()),
        // The same SQLSTATE as for a cancel request.
        Err(error) if over && error.code() == Some(&SqlState::QUERY_CANCELED) => timed_out(limit.limit),
        Err(error) => error_text(&error),
    };
    Err(WorkError::Failed(reason))
}

/// Releases the advisory lock; the end of the session does so too, but a moment after the client closes it. Returns
/// whether the statement left a transaction open, which is then rolled back: a statement outside of one has the start
/// time of its transaction.
async fn release(client: &Client, key: i64) -> bool {
    let sql = format!(
        "SELECT pg_catalog.now() OPERATOR(pg_catalog.<) pg_catalog.statement_timestamp() FROM pg_catalog.pg_advisory_unlock({key})"
    );
    matches!(tokio::time::timeout(CANCEL, first(client, &sql)).await, Ok(Ok(true)))
}

/// One statement: the extended protocol refuses more.
async fn execute(client: &Client, statement: &str, limit: Duration) -> Result<(), Error> {
    // Rounded up, so that the local limit is over too when the server's is. Zero is no limit; the server's maximum is 24
    // days.
    let limit = i32::try_from(limit.as_millis()).map_or(0, |limit| limit.saturating_add(1));
    client.batch_execute(&format!("SET statement_timeout = {limit}")).await?;
    // Not all platforms support it.
    let _ = client.batch_execute("SET client_connection_check_interval = '1s'").await;
    let rows = client.query_raw(statement, std::iter::empty::<i32>()).await?;
    // One at a time: the rows may not fit into memory.
    let mut rows = std::pin::pin!(rows);
    while rows.try_next().await?.is_some() {}
    Ok(())
}

/// The connection. Dropped before the statement has ended, it cancels the statement.
struct Guard(Option<Listening>);

impl Guard {
    /// For a statement that has ended.
    async fn ended(mut self) {
        if let Some(connection) = self.0.take() {
            connection.close(CANCEL).await;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(connection) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                connection.canceller.cancel(CANCEL).await;
                drop(connection);
            });
        }
    }
}

fn error_text(error: &Error) -> String {
    let mut text = message(error);
    if text == UNEXPECTED {
        text.push_str(": a task cannot use COPY FROM STDIN or TO STDOUT");
    }
    if let Some(db) = error.as_db_error() {
        for (name, more) in [("detail", db.detail()), ("hint", db.hint())] {
            if let Some(more) = more {
                let more = locktop_base::text::one_line_prefix(more, MORE);
                text.extend(["; ", name, ": ", &more]);
            }
        }
    }
    text
}

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
async fn open(info: &ConnInfo, key: i64, why: &mut String) -> Result<Listening, String> {
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
