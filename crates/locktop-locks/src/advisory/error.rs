use std::time::Duration;

use locktop_base::text::one_line_prefix;
use pg_connect::error::ConnectError;
use pg_connect::message;
use pg_connect::refusal;

/// Characters of a message that are kept: a server may send any amount.
const MESSAGE: usize = 300;

/// Why there is no lock, or no longer one. If a connection was part of the call it is closed, since it is uncertain what
/// it holds; so the server releases whatever it held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdvisoryError {
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The pool did not provide a connection; the message is the pool's.
    #[error("no connection from the pool: {0}")]
    Pool(String),
    /// An invalid request, such as a semaphore without permits.
    #[error("{0}")]
    Request(&'static str),
    /// A pooler is between the client and the server, or that cannot be determined.
    #[error(transparent)]
    Pooler(#[from] PoolerError),
    /// The server refused: a deadlock, a cancelled statement, no room in its lock table.
    #[error("{what} failed: {message} (SQLSTATE {sqlstate})")]
    Server {
        /// The text of the statement.
        what: String,
        /// Its SQLSTATE, five characters (appendix "PostgreSQL Error Codes").
        sqlstate: String,
        /// The server's error message, in one line of at most 300 characters.
        message: String,
    },
    /// The connection ended, and with it every lock of its session.
    #[error("the connection ended before {what} was answered, and its locks with it: {reason}")]
    Lost {
        /// The text of the statement.
        what: String,
        /// The client library's description of the end of the connection.
        reason: String,
    },
    /// No answer in time. The connection is unusable, and closed.
    #[error("no answer to {what} within {} s", .limit.as_secs())]
    Silent {
        /// The text of the statement.
        what: String,
        /// How long the call waited for an answer: 10 s beyond the wait for the lock.
        limit: Duration,
    },
    /// The lock that the work needs is no longer held.
    #[error(transparent)]
    NotHeld(#[from] Lost),
}

impl AdvisoryError {
    pub(super) fn silent(what: &str, limit: Duration) -> Self {
        Self::Silent { what: one_line_prefix(what, MESSAGE).into_owned(), limit }
    }

    /// The error of this statement.
    pub(super) fn of(what: &str, refusal: Refusal) -> Self {
        let what = one_line_prefix(what, MESSAGE).into_owned();
        match refusal {
            Refusal::Server { sqlstate, message } => Self::Server { what, sqlstate, message },
            Refusal::Lost(reason) => Self::Lost { what, reason },
        }
    }

    /// Whether the same request may succeed later: the server is out of reach, or out of resources (class 53), shutting down
    /// (57), or chose this request as the victim of a deadlock (40).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lost { .. }
            | Self::Silent { .. }
            | Self::Pool(_)
            | Self::Pooler(PoolerError::Unknown(_)) => true,
            Self::Connect(error) | Self::Pooler(PoolerError::Second(error)) => {
                !error.needs_password() && error.sqlstate().is_none_or(is_passing)
            }
            Self::Server { sqlstate, .. } => is_passing(sqlstate),
            _ => false,
        }
    }

    /// The server's SQLSTATE, if the server refused.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { sqlstate, .. } => Some(sqlstate),
            Self::Connect(error) => error.sqlstate(),
            _ => None,
        }
    }
}

fn is_passing(sqlstate: &str) -> bool {
    ["08", "40", "53", "57"].iter().any(|class| sqlstate.starts_with(class))
}

/// Why a lock is no longer held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// Its connection ended, for this reason.
    #[error("the lock is lost, its connection ended: {0}")]
    Ended(String),
    /// A call on the guard was dropped or not answered: it is not known what the session holds.
    #[error("the lock is released: an earlier call on it was abandoned, and its connection is closed")]
    GivenUp,
    /// It was no longer held when it was released: it was unlocked on this connection without the guard.
    #[error("the lock was not held to the end: it was unlocked without the guard")]
    Unlocked,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The server refused, and the session continues.
    Server {
        /// Its SQLSTATE, five characters (appendix "PostgreSQL Error Codes").
        sqlstate: String,
        /// Its error message, in one line of at most 300 characters.
        message: String,
    },
    /// The connection has ended, for this reason.
    Lost(String),
}

impl From<&tokio_postgres::Error> for Refusal {
    fn from(error: &tokio_postgres::Error) -> Self {
        match refusal(error) {
            Some(db) => Self::Server {
                sqlstate: db.code().code().to_owned(),
                message: one_line_prefix(db.message(), MESSAGE).into_owned(),
            },
            None => Self::Lost(message(error)),
        }
    }
}

/// Why no session lock can be taken, or why that cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolerError {
    /// The connection uses a pooler in transaction mode.
    #[error(
        "the connection uses a pooler in transaction mode, in which a session lock would belong to other clients: connect directly to the server, or to a pool in session mode"
    )]
    Transactions,
    /// The second connection, which the check needs, could not be opened.
    #[error("the second connection, which detects a pooler, could not be opened: {0}")]
    Second(ConnectError),
    /// One of the two connections was refused, or was lost.
    #[error("not known whether a pooler is between this program and the server: {0}")]
    Unknown(String),
}
