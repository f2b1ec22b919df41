//! Where the connections of locks come from: a pool, or a connection for each.

#[cfg(feature = "bb8")]
mod bb8;
#[cfg(feature = "sqlx")]
mod sqlx;

use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};

#[cfg(feature = "sqlx")]
pub use self::sqlx::Pooled;
use crate::Error;
pub use crate::Refusal;
#[cfg(feature = "bb8")]
pub use bb8::{Bb8Connection, WithTls};
use pg_connect::connect::{Listening, listen};
use pg_connect::conninfo::ConnInfo;

/// Longest attempt to cancel a wait for a lock.
pub(crate) const CANCEL: Duration = Duration::from_secs(5);
/// How long a connection may take to close.
pub(crate) const GOODBYE: Duration = Duration::from_secs(1);
/// How often an idle connection of a pool is pinged, and how long the answer may take.
#[cfg(any(feature = "bb8", feature = "deadpool", feature = "sqlx"))]
const PING: Duration = Duration::from_secs(10);
/// How often it is checked whether the client is closed, which sends nothing.
#[cfg(any(feature = "bb8", feature = "deadpool"))]
const CHECK: Duration = Duration::from_millis(50);

/// Provides connections: a [`ConnInfo`] connects for each lock; with the
/// feature of its name, a pool of `deadpool`, `bb8` (with TLS: `WithTls`) or `sqlx`.
pub trait Source: Clone + Send + Sync + 'static {
    /// Its connections.
    type Conn: Conn;

    /// A connection for exclusive use until it is dropped.
    ///
    /// # Errors
    /// If no connection can be provided.
    fn get(&self) -> impl Future<Output = Result<Self::Conn, Error>> + Send;
}

/// A connection of a [`Source`]. Dropping it returns it.
pub trait Conn: Send + 'static {
    /// Statements before the one that takes a lock, in the same message, such as settings of the session. Not sent before the
    /// test for a pooler.
    const SETTINGS: &'static str = "";

    /// Sends statements in one message of the simple protocol, and returns the first column of the last row. If the future is dropped
    /// before it completes, only [`Conn::discard`] is called after that.
    fn ask(&mut self, sql: &str) -> impl Future<Output = Result<Option<String>, Refusal>> + Send;

    /// Completes, with the reason, when the connection has ended. Called while no statement is in progress; may be dropped at any
    /// time.
    fn ended(&mut self) -> impl Future<Output = String> + Send;

    /// Closes the connection, which must never be reused, and cancels a wait for a lock in progress.
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
) -> Result<T, Error> {
    let answer = match limit {
        None => answer.await,
        Some(limit) => tokio::time::timeout(limit, answer).await.map_err(|_| Error::silent(what, limit))?,
    };
    answer.map_err(|refusal| Error::refused(what, refusal))
}

/// [`Conn::ended`] for a client whose driver belongs to a pool: a closed connection is detected within 50 ms, a server that does
/// not answer within 20 s.
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
            _ = ping.tick() => match tokio::time::timeout(PING, client.check_connection()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return pg_connect::message(&error),
                Err(_) => return format!("the server has not answered for {} s", PING.as_secs()),
            },
        }
    }
}

/// Runs in the background, if there is a runtime.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(work);
    }
}

/// A connection of this crate's own. Dropping it closes it.
#[derive(Debug)]
pub struct Direct {
    /// `None` only while this is being dropped.
    connection: Option<Listening>,
    /// A statement is in progress.
    is_busy: bool,
}

impl Source for ConnInfo {
    type Conn = Direct;

    async fn get(&self) -> Result<Direct, Error> {
        Ok(Direct { connection: Some(listen(self).await?), is_busy: false })
    }
}

impl Conn for Direct {
    /// The session may idle while it holds a lock, and the server detects that the client is gone.
    const SETTINGS: &'static str = "SELECT pg_catalog.set_config('idle_session_timeout', '0', false), \
         pg_catalog.set_config('tcp_keepalives_idle', '30', false), \
         pg_catalog.set_config('tcp_keepalives_interval', '10', false), \
         pg_catalog.set_config('tcp_keepalives_count', '3', false), \
         pg_catalog.set_config('tcp_user_timeout', '60s', false); ";

    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        let Some(connection) = &self.connection else {
            return Err(Refusal::Lost("it was closed".to_owned()));
        };
        self.is_busy = true;
        let answer = ask(&connection.client, sql).await;
        self.is_busy = false;
        answer
    }

    async fn ended(&mut self) -> String {
        let stopped = || "its task was stopped".to_owned();
        let Some(connection) = &mut self.connection else { return stopped() };
        let reason = connection.ended.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        reason.unwrap_or_else(stopped)
    }

    fn discard(self) {}
}

impl Drop for Direct {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.is_busy {
            // A backend that waits for a lock does not notice that its client has disconnected.
            let canceller = connection.canceller.clone();
            drop(connection);
            spawn(async move { canceller.cancel(CANCEL).await });
        } else {
            // The driver sends a Terminate message, since a server with TLS would log an error otherwise. But it first waits
            // for the answers to all other requests on this connection.
            spawn(connection.close(GOODBYE));
        }
    }
}

/// Connections of a pool of `deadpool-postgres`.
#[cfg(feature = "deadpool")]
impl Source for deadpool_postgres::Pool {
    type Conn = deadpool_postgres::Object;

    async fn get(&self) -> Result<Self::Conn, Error> {
        Self::get(self).await.map_err(|error| Error::pool(&error))
    }
}

#[cfg(feature = "deadpool")]
impl Conn for deadpool_postgres::Object {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        ask(self, sql).await
    }

    async fn ended(&mut self) -> String {
        closed(self).await
    }

    /// The TLS settings of the pool are not known here, so the cancel request is sent without TLS. A server that rejects it detects
    /// the closed connection by `client_connection_check_interval`.
    fn discard(self) {
        let token = self.cancel_token();
        // The task of the connection ends with this.
        drop(Self::take(self));
        spawn(async move {
            let _ = tokio::time::timeout(CANCEL, token.cancel_query(tokio_postgres::NoTls)).await;
        });
    }
}
