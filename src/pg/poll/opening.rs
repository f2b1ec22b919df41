//! A connection during setup: nothing of it may remain if that fails or takes too long.

use std::time::Duration;

use futures_util::future::join;
use postgres_protocol::escape::escape_literal;
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Error};

use super::{PollLimits, link};
use crate::model::snapshot::{Keepalives, Pooling, Server, Tls, WalReplay};
use crate::model::{Text, Timestamp};
use crate::pg::Scope;
use crate::pg::decode::Encoding;
use crate::pg::decode::value::{boolean, float8, int4, oid, raw, text, timestamp};
use crate::pg::sql;
use crate::text::parse_duration;
use locktop_tasks::sql::PATH;
use pg_connect::connect::{Connection, Place, SearchPath, connect_somewhere, pin};
use pg_connect::conninfo::ConnInfo;
use pg_connect::error::ConnectError;
use pg_connect::message;

/// Longest time for a cancel request.
const CANCEL: Duration = Duration::from_secs(1);

/// Ends the connection at once when dropped: otherwise the driver would wait for outstanding answers, which may never
/// arrive.
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

#[derive(Debug)]
pub(super) struct Opening {
    connection: Connection,
    pub(super) place: Place,
    guard: Guard,
}

impl Opening {
    /// Connects to the first place of `info` that accepts the connection; makes no settings.
    pub(super) async fn connect(info: &ConnInfo) -> Result<Self, ConnectError> {
        let (connection, place) = connect_somewhere(info).await?;
        let guard = Guard { driver: connection.driver.abort_handle(), armed: true };
        Ok(Self { connection, place, guard })
    }

    /// The pooling in between, before any settings. A pooler that is `known` is not tested again.
    pub(super) async fn pooling(
        &self,
        info: &ConnInfo,
        limits: &PollLimits,
        known: impl Future<Output = Option<Pooling>>,
    ) -> Result<Pooling, OpenError> {
        let asked = link::is_between(self.client(), limits.lock_timeout);
        if !self.within(limits.poll_timeout, asked).await? {
            return Ok(Pooling::None);
        }
        match known.await {
            None | Some(Pooling::None) => {
                Ok(Box::pin(link::detect_pooling(self.client(), info, limits.poll_timeout)).await)
            }
            Some(known) => Ok(known),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.connection.client
    }

    /// Waits for `setup` at most this long. If the server has not answered by then, a cancel request is sent so that its
    /// process does not continue to wait.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        setup: impl Future<Output = Result<T, OpenError>>,
    ) -> Result<T, OpenError> {
        if let Ok(done) = tokio::time::timeout(limit, setup).await {
            return done;
        }
        // Best effort: if the server does not process this either, nothing more can be done.
        self.connection.canceller.cancel(CANCEL).await;
        Err(OpenError::Silent)
    }

    /// Passes the ready connection to the caller.
    pub(super) fn ready(mut self) -> Connection {
        self.guard.armed = false;
        self.connection
    }
}

/// Pins the search path first and alone, so that nothing is sent if it cannot be pinned.
pub(super) async fn pinned(client: &Client) -> Result<SearchPath, OpenError> {
    pin(client).await.map_err(|error| OpenError::Setup(message(&error)))
}

/// Keeps the role's own path for queries of the config, which may name tables along it.
async fn keep(client: &Client, path: &SearchPath) -> Result<(), Error> {
    let names = serde_json::Value::from(path.schemas().to_vec()).to_string();
    let sql = format!("SELECT pg_catalog.set_config('{PATH}', {}, false)", escape_literal(&names));
    client.batch_execute(&sql).await
}

/// The other settings. The limits come first, in a separate message: they read no catalog, and once they are in force no
/// later statement waits longer for a catalog lock.
pub(super) async fn settings(
    client: &Client,
    limits: &PollLimits,
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

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Connected, but the server refuses what locktop needs first.
    #[error("the server accepted the connection and then failed: {0}")]
    Setup(String),
    /// Connected, but the server does not answer.
    #[error("the server accepted the connection and does not answer")]
    Silent,
    /// An unusable pooler, with a remedy.
    #[error("{0}")]
    Pooler(String),
    /// The session has statements that locktop prepared in another session: a pooler passes sessions to other clients without
    /// a reset.
    #[error("a pooler passes sessions to other clients without a reset")]
    Pooled,
    /// A server without the features that locktop reads.
    #[error("PostgreSQL {0}: locktop needs 14 or later")]
    TooOld(String),
}

impl OpenError {
    /// Whether the error may be temporary: too many connections, or starting up (SQLSTATE 53300, 57P03).
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Connect(error) if error.is_waitable())
    }

    /// Whether the server accepted the connection and then did not answer. Each further attempt may leave a process there
    /// that waits for whatever blocks the server.
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Silent => true,
            Self::Connect(error) => error.is_silence(),
            Self::Setup(_) | Self::Pooler(_) | Self::Pooled | Self::TooOld(_) => false,
        }
    }
}

/// A connection with the settings of a session only.
///
/// # Errors
/// Also if a pooler keeps no session for it.
pub async fn open_plain(info: &ConnInfo, limits: &PollLimits) -> Result<Connection, OpenError> {
    match Box::pin(open_second(info, limits, std::future::ready(None))).await? {
        (_, Pooling::Transactions) => Err(link::no_session()),
        (connection, _) => Ok(connection),
    }
}

/// The same next to a polling connection that was made with the same `info`; `known` is the pooling found for that one.
/// If a pooler is in transaction mode, nothing is set: each message must include what it needs.
pub async fn open_second(
    info: &ConnInfo,
    limits: &PollLimits,
    known: impl Future<Output = Option<Pooling>>,
) -> Result<(Connection, Pooling), OpenError> {
    let opening = Box::pin(Opening::connect(info)).await?;
    let pooling = Box::pin(opening.pooling(info, limits, known)).await?;
    if pooling == Pooling::Transactions {
        return Ok((opening.ready(), pooling));
    }
    let setup = async {
        let client = opening.client();
        let path = pinned(client).await?;
        let (set, words) =
            join(settings(client, limits, &path, Scope::Own), client.batch_execute(sql::WORDS)).await;
        let set = set.and(words);
        set.map_err(|error| OpenError::Setup(message(&error)))
    };
    opening.within(limits.poll_timeout, setup).await?;
    Ok((opening.ready(), pooling))
}

pub(super) fn clock_of(row: &tokio_postgres::Row) -> Option<Timestamp> {
    timestamp(raw(row, 10))
}

pub(super) fn encoding_of(row: &tokio_postgres::Row) -> Encoding {
    text(raw(row, 11)).map(|name| Encoding::named(&name)).unwrap_or_default()
}

pub(super) fn identity_of(row: &tokio_postgres::Row) -> Server {
    let encoding = encoding_of(row);
    let words = |column| raw(row, column).map(|bytes| encoding.shared(bytes)).unwrap_or_default();
    let version: Text = words(1).split_whitespace().next().unwrap_or_default().into();
    let positive =
        |column| int4(raw(row, column)).and_then(|value| u32::try_from(value).ok()).unwrap_or_default();
    Server {
        // The connection knows the host.
        host: Text::default(),
        port: 0,
        pooling: Pooling::None,
        tls: Tls::None,
        version_num: positive(0),
        version,
        in_recovery: false,
        database: (&*words(2)).into(),
        datid: oid(raw(row, 3)).unwrap_or_default(),
        user: (&*words(4)).into(),
        own_pid: int4(raw(row, 5)).unwrap_or_default(),
        connections: 0,
        max_connections: positive(6),
        max_locks_per_transaction: positive(16),
        lock_slots: positive(17),
        deadlocks: 0,
        deadlocks_of: std::sync::Arc::default(),
        started_at: timestamp(raw(row, 7)),
        replayed_at: None,
        replay: WalReplay::default(),
        keepalives: keepalives_of(&words(13)),
        query_size: bytes_of_setting(&words(8)),
        deadlock_timeout: parse_duration(&words(14)).map(|time| time.as_secs_f64()),
        log_lock_waits: boolean(raw(row, 15)),
        sees_all: boolean(raw(row, 9)).unwrap_or_default(),
        orphan_grace: float8(raw(row, 12)).filter(|seconds| seconds.is_finite() && *seconds >= 0.0),
    }
}

/// The settings in the order of their names, separated by commas. An unreadable one counts as the system default.
fn keepalives_of(text: &str) -> Keepalives {
    let mut numbers = text.split(',').map(|number| number.parse().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    let (check, count, idle, interval) = (next(), next(), next(), next());
    Keepalives { idle, interval, count, check }
}

/// A memory setting as `current_setting` prints it, `1kB`, in bytes.
pub(super) fn bytes_of_setting(text: &str) -> u32 {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        _ => 1,
    };
    number.parse::<u32>().unwrap_or_default().saturating_mul(unit)
}
