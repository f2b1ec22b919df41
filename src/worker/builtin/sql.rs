//! A task that is one SQL statement.

use std::time::Duration;

use futures_util::TryStreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{CancelToken, Client, Error};

use super::{WorkError, timed_out};
use crate::clock;
use crate::pg::connect::{Listening, listen};
use crate::pg::conninfo::ConnInfo;
use crate::pg::poll::message;
use crate::pg::tls::Connector;
use crate::worker::stop::Stop;

/// Longest time for asking the server to end a statement, and for it to do so.
const CANCEL: Duration = Duration::from_secs(2);
/// The server's own limit comes first; what does not end by it is cancelled so much later.
const MARGIN: Duration = Duration::from_secs(1);
/// Most characters of the server's detail and hint in an error.
const MORE: usize = 1000;

/// Runs it on a connection of its own. A statement does not run on after this returned, or was dropped: it is cancelled, then the
/// connection is closed, and the server looks every second whether it still is there.
pub(super) async fn run(
    info: &ConnInfo,
    statement: &str,
    limit: Duration,
    stop: &Stop,
) -> Result<(), WorkError> {
    let connection = tokio::select! {
        biased;
        reason = stop.stopped() => return Err(WorkError::Stopped(reason)),
        connection = listen(info) => connection,
    };
    let connection = connection.map_err(|error| WorkError::Failed(format!("no connection: {error}")))?;
    let guard = Guard(Some(connection));
    let Some(client) = guard.client() else { return Ok(()) };
    let outcome = attend(client, statement, limit, stop).await;
    guard.ended().await;
    outcome
}

async fn attend(client: &Client, statement: &str, limit: Duration, stop: &Stop) -> Result<(), WorkError> {
    let began = clock::monotonic();
    let mut work = std::pin::pin!(execute(client, statement, limit));
    let outcome = tokio::select! {
        biased;
        reason = stop.stopped() => WorkError::Stopped(reason),
        done = &mut work => return done.map_err(|error| {
            // The same code as when somebody cancels it.
            let timeout = error.code() == Some(&SqlState::QUERY_CANCELED) && began.elapsed() >= limit;
            WorkError::Failed(if timeout { timed_out(limit) } else { said(&error) })
        }),
        () = tokio::time::sleep(limit.saturating_add(MARGIN)) => WorkError::Failed(timed_out(limit)),
    };
    cancel(client.cancel_token()).await;
    // Its end, if the server listens: only then it is sure that nothing of it happens any more.
    match tokio::time::timeout(CANCEL, work).await {
        // It was faster than the cancellation.
        Ok(Ok(())) => Ok(()),
        _ => Err(outcome),
    }
}

/// One statement: the extended protocol refuses more.
async fn execute(client: &Client, statement: &str, limit: Duration) -> Result<(), Error> {
    // Zero is no limit; the server counts up to 24 days.
    let limit = i32::try_from(limit.as_millis()).map_or(0, |limit| limit.max(1));
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
    fn client(&self) -> Option<&Client> {
        self.0.as_ref().map(|connection| &connection.client)
    }

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
            let token = connection.client.cancel_token();
            runtime.spawn(async move {
                cancel(token).await;
                drop(connection);
            });
        }
    }
}

async fn cancel(token: CancelToken) {
    if let Ok(tls) = Connector::new() {
        let _ = tokio::time::timeout(CANCEL, token.cancel_query(tls)).await;
    }
}

/// What the server says, with detail and hint.
fn said(error: &Error) -> String {
    let mut text = message(error);
    if let Some(db) = error.as_db_error() {
        for (name, more) in [("detail", db.detail()), ("hint", db.hint())] {
            if let Some(more) = more {
                let more = crate::text::one_line_prefix(more, MORE);
                text.extend(["; ", name, ": ", &more]);
            }
        }
    }
    text
}
