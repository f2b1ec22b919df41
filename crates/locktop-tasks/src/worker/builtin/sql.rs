use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use super::{WorkError, place, timed_out};
use crate::worker::stop::Stop;
use locktop_base::clock;
use pg_connect::connect::Listening;
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

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
        opened = tokio::time::timeout(limit, place::open(info, key, &mut why)) => opened,
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
        Err(error) => said(&error),
    };
    Err(WorkError::Failed(reason))
}

/// Releases the advisory lock after the statement has ended. Returns whether the statement left a transaction open,
/// which is then rolled back.
async fn release(client: &Client, key: i64) -> bool {
    matches!(tokio::time::timeout(CANCEL, place::close(client, key)).await, Ok(Ok(true)))
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

fn said(error: &Error) -> String {
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
