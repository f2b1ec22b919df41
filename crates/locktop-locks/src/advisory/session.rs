use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::call::{Call, Level};
use super::error::AdvisoryError;
use super::{Key, Mode, Wait};
use crate::pooler;
use pg_connect::connect::{Canceller, Connection, connect};
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

/// For a connection that this crate opens. It may idle while it holds a lock; a server that checks its client every 5 s
/// stops waiting for a lock that no client is left to receive; keepalives as in the module's documentation. Each is a
/// statement of its own: the second one fails on systems that cannot watch a socket.
const SETTINGS: [&str; 6] = [
    "SET idle_session_timeout = 0",
    "SET client_connection_check_interval = '5s'",
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
    "SET tcp_user_timeout = '60s'",
];

/// Longest wait for an answer that nothing on the server delays; for a lock, in addition to its own wait.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may take to close.
const GOODBYE: Duration = Duration::from_secs(1);
/// Longest attempt to cancel a request for a lock.
const CANCEL: Duration = Duration::from_secs(5);

/// An exclusive connection to one backend. Dropping it closes it, and the server releases what it holds.
#[derive(Debug)]
pub struct Session {
    client: Client,
    driver: JoinHandle<Result<(), tokio_postgres::Error>>,
    ended: watch::Receiver<Option<String>>,
    close: Close,
    pid: i32,
}

impl Session {
    /// Connects, with settings that let the connection idle and make its loss noticed on both sides.
    ///
    /// # Errors
    /// If no connection can be made, or a pooler would lend it to other clients.
    pub async fn open(info: &ConnInfo) -> Result<Self, AdvisoryError> {
        let mut session = Self::adopt(connect(info).await?, info).await?;
        for setting in SETTINGS {
            match session.ask(setting).await {
                Ok(_) | Err(AdvisoryError::Server { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(session)
    }

    /// Takes over an open connection, such as one from a pool; its settings are not changed. `info` must lead to the same
    /// place: a second connection is opened there to detect a pooler.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub async fn adopt(connection: Connection, info: &ConnInfo) -> Result<Self, AdvisoryError> {
        pooler::refuse_transaction_mode(&connection.client, info).await?;
        let Connection { client, canceller, driver } = connection;
        let (sender, ended) = watch::channel(None);
        let close = Close { driver: driver.abort_handle(), canceller, state: State::Idle };
        let driver = tokio::spawn(async move {
            let outcome = driver.await;
            let reason = match &outcome {
                Ok(Ok(())) => "the connection was closed".to_owned(),
                Ok(Err(error)) => message(error),
                Err(_) => "its task was stopped".to_owned(),
            };
            let _ = sender.send(Some(reason));
            outcome.unwrap_or(Ok(()))
        });
        let mut session = Self { client, driver, ended, close, pid: 0 };
        let pid = session.ask("SELECT pg_catalog.pg_backend_pid()").await?;
        session.pid = pid.and_then(|pid| pid.parse().ok()).unwrap_or_default();
        Ok(session)
    }

    /// The process id of its backend.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The client, for other statements on this connection, such as a worker's heartbeats.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The client, for transactions on this connection, which need exclusive access.
    pub fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Whether the connection has ended, and with it every lock of the session.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.close.state == State::GivenUp || self.ended.borrow().is_some() || self.client.is_closed()
    }

    /// Completes, with the reason, when the connection ends.
    pub fn lost(&self) -> impl Future<Output = String> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(reason) => reason.clone().unwrap_or_default(),
                Err(_) => "its task was stopped".to_owned(),
            }
        }
    }

    /// Releases every lock of this session and returns the connection, so that a pool may have it.
    ///
    /// # Errors
    /// If the connection is lost, or it is uncertain what it holds; it is closed then.
    pub async fn into_connection(mut self) -> Result<Connection, AdvisoryError> {
        self.ask(&Call::UnlockAll.sql()).await?;
        self.close.state = State::GivenAway;
        Ok(Connection { client: self.client, canceller: self.close.canceller.clone(), driver: self.driver })
    }

    /// Acquires a session lock; false if it is not granted in time.
    pub(super) async fn lock(&mut self, key: Key, mode: Mode, wait: Wait) -> Result<bool, AdvisoryError> {
        let Some(lock_timeout) = wait.lock_timeout() else {
            return self.say(Call::Try(Level::Session, mode, key)).await;
        };
        // Several statements in one message are one transaction: the settings end with it, even if it fails, and the lock does
        // not (protocol: "Multiple Statements in a Simple Query"). The message is only for the wait, so the session's
        // statement_timeout must not cut it short.
        let call = Call::Lock(Level::Session, mode, key).sql();
        let sql = format!("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {lock_timeout}; {call}");
        match self.ask_within(wait.timeout(), &sql).await {
            Ok(_) => Ok(true),
            Err(error) if error.sqlstate() == Some(SqlState::LOCK_NOT_AVAILABLE.code()) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Releases a session lock once; returns whether it was held.
    pub(super) async fn unlock(&mut self, key: Key, mode: Mode) -> Result<bool, AdvisoryError> {
        self.say(Call::Unlock(mode, key)).await
    }

    async fn say(&mut self, call: Call) -> Result<bool, AdvisoryError> {
        Ok(self.ask(&call.sql()).await?.as_deref() == Some("t"))
    }

    /// The first column of the answer, for statements that do not wait for a lock.
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, AdvisoryError> {
        self.ask_within(Some(TIMEOUT), sql).await
    }

    /// The first column of the answer. If this is dropped before it completes, or there is no answer in time, the session is
    /// closed: a lock that is granted later would belong to no guard.
    async fn ask_within(
        &mut self,
        limit: Option<Duration>,
        sql: &str,
    ) -> Result<Option<String>, AdvisoryError> {
        if self.close.state != State::Idle {
            return Err(AdvisoryError::GivenUp);
        }
        self.close.state = State::Asking;
        let asking = Asking(&mut self.close);
        let answer = within(limit, sql, self.client.simple_query(sql)).await;
        if !matches!(answer, Err(AdvisoryError::Silent { .. })) {
            asking.0.state = State::Idle;
        }
        drop(asking);
        let rows = answer?;
        Ok(rows.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten().map(str::to_owned),
            _ => None,
        }))
    }
}

/// Waits for an answer; `None` is no limit.
pub(super) async fn within<T>(
    limit: Option<Duration>,
    what: &str,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, AdvisoryError> {
    let answer = match limit {
        None => answer.await,
        Some(limit) => tokio::time::timeout(limit, answer)
            .await
            .map_err(|_| AdvisoryError::Silent { what: what.to_owned(), limit })?,
    };
    answer.map_err(|error| AdvisoryError::of(what, &error))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// A statement is in progress.
    Asking,
    /// A statement had no answer; the connection is closed.
    GivenUp,
    /// The connection was handed over to the caller.
    GivenAway,
}

#[derive(Debug)]
struct Close {
    driver: AbortHandle,
    canceller: Canceller,
    state: State,
}

/// A statement in progress, which is given up with this.
#[derive(Debug)]
struct Asking<'a>(&'a mut Close);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl Close {
    /// Closes the connection and cancels its statement, if one is in progress.
    fn give_up(&mut self) {
        if self.state != State::Asking {
            return;
        }
        self.state = State::GivenUp;
        self.driver.abort();
        // A backend that waits for a lock does not notice that its client has disconnected.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let canceller = self.canceller.clone();
            runtime.spawn(async move { canceller.cancel(CANCEL).await });
        }
    }
}

impl Drop for Close {
    fn drop(&mut self) {
        self.give_up();
        if self.state != State::Idle {
            return;
        }
        let driver = self.driver.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            driver.abort();
            return;
        };
        // The driver sends a Terminate message, since a server with TLS would log an error otherwise. But it first waits for the
        // answers to all other requests on this connection.
        runtime.spawn(async move {
            tokio::time::sleep(GOODBYE).await;
            driver.abort();
        });
    }
}
