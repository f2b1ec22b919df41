//! A connection while it is being set up: nothing of it may stay when that fails or takes too long.

use std::time::Duration;

use postgres_protocol::escape::escape_literal;
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Error};

use super::{Limits, OpenError, pooler};
use crate::model::snapshot::Pooling;
use crate::pg::scope::Scope;
use crate::pg::sql;
use locktop_tasks::sql::PATH;
use pg_connect::connect::{Connection, Place, SearchPath, connect_somewhere, pin};
use pg_connect::conninfo::ConnInfo;
use pg_connect::error::ConnectError;
use pg_connect::message;

/// Longest time for asking the server to give up what it is doing.
const CANCEL: Duration = Duration::from_secs(1);

/// Dropped, it ends the connection at once: left to itself the driver would wait for answers that are still due, and
/// they may never come.
#[derive(Debug)]
struct Guard {
    driver: AbortHandle,
    armed: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.armed {
            self.driver.abort();
        }
    }
}

/// A connection that is not ready yet.
#[derive(Debug)]
pub(super) struct Opening {
    connection: Connection,
    /// Where the server is.
    pub(super) place: Place,
    guard: Guard,
}

impl Opening {
    /// Connects to the first place of `info` that takes us; nothing is set there yet.
    pub(super) async fn connect(info: &ConnInfo) -> Result<Self, ConnectError> {
        let (connection, place) = connect_somewhere(info).await?;
        let guard = Guard { driver: connection.driver.abort_handle(), armed: true };
        Ok(Self { connection, place, guard })
    }

    /// What is in between, before anything is set. A pooler that is `known` is not asked again.
    pub(super) async fn pooling(
        &self,
        info: &ConnInfo,
        limits: &Limits,
        known: impl Future<Output = Option<Pooling>>,
    ) -> Result<Pooling, OpenError> {
        let asked = pooler::is_between(self.client(), limits.lock_timeout);
        if !self.within(limits.poll_timeout, asked).await? {
            return Ok(Pooling::None);
        }
        match known.await {
            None | Some(Pooling::None) => {
                Ok(Box::pin(pooler::keeps_sessions(self.client(), info, limits.poll_timeout)).await)
            }
            Some(known) => Ok(known),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.connection.client
    }

    /// Waits for `setup`, at most so long. A server that does not answer by then is asked to stop, so that its
    /// process does not go on waiting for whatever holds it up.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        setup: impl Future<Output = Result<T, OpenError>>,
    ) -> Result<T, OpenError> {
        if let Ok(done) = tokio::time::timeout(limit, setup).await {
            return done;
        }
        // Best effort: a server that does not hear this either cannot be helped.
        self.connection.canceller.cancel(CANCEL).await;
        Err(OpenError::Silent)
    }

    /// The connection is ready, and the caller's.
    pub(super) fn ready(mut self) -> Connection {
        self.guard.armed = false;
        self.connection
    }
}

/// Sets the session up: the search path before anything else, alone, so that nothing is asked where it could not be pinned.
pub(super) async fn pinned(client: &Client) -> Result<SearchPath, OpenError> {
    pin(client).await.map_err(|error| OpenError::Setup(message(&error)))
}

/// The role's own path, for queries of the config: they may name tables along it.
async fn keep(client: &Client, path: &SearchPath) -> Result<(), Error> {
    let names = serde_json::Value::from(path.schemas().to_vec()).to_string();
    let sql = format!("SELECT pg_catalog.set_config('{PATH}', {}, false)", escape_literal(&names));
    client.batch_execute(&sql).await
}

/// The other settings. The limits come first, in a message of their own: they read no catalog, and with them in
/// force nothing that follows waits longer for a lock on one.
pub(super) async fn settings(
    client: &Client,
    limits: &Limits,
    path: &SearchPath,
    scope: Scope,
) -> Result<(), Error> {
    let timeouts = sql::timeouts(limits.statement_timeout, limits.lock_timeout);
    let settings = match scope {
        Scope::Own => format!("{}; {}", sql::settings(), sql::KEEP_MEMORY),
        Scope::Open => format!("{}; {}", sql::settings(), sql::IDLE),
    };
    let (timeouts, settings, kept) = futures_util::future::join3(
        client.batch_execute(&timeouts),
        client.batch_execute(&settings),
        keep(client, path),
    )
    .await;
    timeouts.and(settings).and(kept)
}
