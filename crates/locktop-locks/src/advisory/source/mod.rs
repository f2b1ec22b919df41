//! Where the connections of locks come from: a pool, or a connection for each.

#[cfg(feature = "bb8")]
mod bb8;
#[cfg(feature = "deadpool")]
mod deadpool;
mod direct;

use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};

use super::error::AdvisoryError;
pub use super::error::Refusal;
#[cfg(feature = "bb8")]
pub use bb8::{Lent, WithTls};
pub use direct::Direct;
use pg_connect::message;

/// How often a connection that has nobody to watch it is asked whether it still answers.
#[cfg(any(feature = "bb8", feature = "deadpool"))]
const PING: Duration = Duration::from_secs(10);
/// How often it is checked that the client is open, which sends nothing.
#[cfg(any(feature = "bb8", feature = "deadpool"))]
const CHECK: Duration = Duration::from_millis(50);

/// Makes connections, or lends them: a [`ConnInfo`](pg_connect::conninfo::ConnInfo) connects for each lock; with the
/// feature of its name, a pool of `deadpool` or `bb8` (with TLS: `WithTls`).
pub trait Source: Clone + Send + Sync + 'static {
    /// What it lends.
    type Conn: Conn;

    /// A connection that nobody else uses until it is dropped.
    ///
    /// # Errors
    /// If there is none.
    fn get(&self) -> impl Future<Output = Result<Self::Conn, AdvisoryError>> + Send;
}

/// A connection that is lent. Dropping it gives it back.
pub trait Conn: Send + 'static {
    /// Statements before the one that takes a lock, in the same message, such as settings of the session. Not sent before it
    /// is known that no pooler lends the session to others.
    const SETTINGS: &'static str = "";

    /// Sends statements in one message of the simple protocol; the first column of the last row. If the future is dropped
    /// before it completes, only [`Conn::discard`] is called after that.
    fn ask(&mut self, sql: &str) -> impl Future<Output = Result<Option<String>, Refusal>> + Send;

    /// Completes, with the reason, when the connection has ended. Called while nothing is asked; may be dropped at any time.
    fn ended(&mut self) -> impl Future<Output = String> + Send;

    /// Closes it, so that nobody ever has it again; the server ends what it still waits for.
    fn discard(self);
}

/// [`Conn::ask`] for a client of tokio-postgres.
///
/// # Errors
/// If the server refuses, or the connection ends.
pub async fn ask(client: &Client, sql: &str) -> Result<Option<String>, Refusal> {
    let answer = client.simple_query(sql).await.map_err(|error| Refusal::from(&error))?;
    let row = answer.iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(row.and_then(|row| row.try_get(0).ok().flatten()).map(str::to_owned))
}

/// Waits for an answer; `None` is no limit.
pub(super) async fn within<T>(
    limit: Option<Duration>,
    what: &str,
    answer: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, AdvisoryError> {
    let answer = match limit {
        None => answer.await,
        Some(limit) => {
            tokio::time::timeout(limit, answer).await.map_err(|_| AdvisoryError::silent(what, limit))?
        }
    };
    answer.map_err(|refusal| AdvisoryError::of(what, refusal))
}

/// [`Conn::ended`] for a client whose driver belongs to a pool: its end is noticed in 50 ms, a server that is out of reach
/// within 20 s.
#[cfg(any(feature = "bb8", feature = "deadpool"))]
async fn closed(client: &Client) -> String {
    let (mut ping, mut check) = (tokio::time::interval(PING), tokio::time::interval(CHECK));
    ping.reset();
    loop {
        tokio::select! {
            _ = check.tick() => {
                if client.is_closed() {
                    return "the connection was closed".to_owned();
                }
            }
            _ = ping.tick() => match tokio::time::timeout(PING, client.simple_query("")).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return message(&error),
                Err(_) => return format!("the server has not answered for {} s", PING.as_secs()),
            },
        }
    }
}

/// Runs in the background, if there is a runtime.
fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(work);
    }
}
