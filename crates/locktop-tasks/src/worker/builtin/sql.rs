//! A task that is one SQL statement.

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

/// Longest time for asking the server to end a statement, and for it to do so.
const CANCEL: Duration = Duration::from_secs(2);
/// The server's own limit comes first; what does not end by it is cancelled so much later.
const MARGIN: Duration = Duration::from_secs(1);
/// Most characters of the server's detail and hint in an error.
const MORE: usize = 1000;

/// A `BEGIN` does nothing, and whoever wrote it thinks that it does.
const LEFT_OPEN: &str = "the statement left a transaction open, which was rolled back: a task cannot use BEGIN, because its one \
    statement is a transaction";
/// What the driver says of a `COPY` that it was not asked for; it has no kind that could be asked for.
const UNEXPECTED: &str = "unexpected message from server";

/// Runs it on a connection of its own. A statement does not run on after this returned, or was dropped: it is cancelled, then the
/// connection is closed, and the server looks every second whether it still is there.
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

/// How long it may take, and since when.
#[derive(Clone, Copy)]
struct Limit {
    began: Instant,
    limit: Duration,
}

impl Limit {
    fn left(self) -> Duration {
        self.limit.saturating_sub(self.began.elapsed())
    }

    /// By our clock; the server's, which ends the statement, may go a little faster.
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
    // Its end, if the server listens: only then it is sure that nothing of it happens any more.
    match tokio::time::timeout(CANCEL, work).await {
        // It was faster than the cancellation.
        Ok(Ok(())) => Ok(()),
        _ => Err(outcome),
    }
}

/// The statement has been answered.
async fn end(
    connection: &Listening,
    key: i64,
    done: Result<(), Error>,
    limit: Limit,
) -> Result<(), WorkError> {
    let over = limit.is_over();
    if done.as_ref().is_err_and(|error| error.as_db_error().is_none()) {
        // The driver did not understand the answer: the server may be at it still.
        connection.canceller.cancel(CANCEL).await;
    }
    let open = release(&connection.client, key).await;
    let reason = match done {
        Ok(()) if open => LEFT_OPEN.to_owned(),
        Ok(()) => return Ok(()),
        // The same code as when somebody cancels it.
        Err(error) if over && error.code() == Some(&SqlState::QUERY_CANCELED) => timed_out(limit.limit),
        Err(error) => said(&error),
    };
    Err(WorkError::Failed(reason))
}

/// Gives back the key, once nothing of the statement happens any more. Says whether it left a transaction open, which then is rolled back.
async fn release(client: &Client, key: i64) -> bool {
    matches!(tokio::time::timeout(CANCEL, place::close(client, key)).await, Ok(Ok(true)))
}

/// One statement: the extended protocol refuses more.
async fn execute(client: &Client, statement: &str, limit: Duration) -> Result<(), Error> {
    // Rounded up, so that it is over here too when it is there. Zero is no limit; the server counts up to 24 days.
    let limit = i32::try_from(limit.as_millis()).map_or(0, |limit| limit.saturating_add(1));
    client.batch_execute(&format!("SET statement_timeout = {limit}")).await?;
    // Where the platform has it.
    let _ = client.batch_execute("SET client_connection_check_interval = '1s'").await;
    let rows = client.query_raw(statement, std::iter::empty::<i32>()).await?;
    // One at a time: there may be more of them than there is memory.
    let mut rows = std::pin::pin!(rows);
    while rows.try_next().await?.is_some() {}
    Ok(())
}

/// The connection. Dropped before the statement has ended, it sends a cancellation behind the statement.
struct Guard(Option<Listening>);

impl Guard {
    /// Nothing runs on it any more.
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

/// What the server says, with detail and hint.
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
