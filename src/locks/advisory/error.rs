//! What can go wrong with an advisory lock.

use crate::locks::pooler::PoolerError;
use crate::pg::error::ConnectError;
use crate::text::one_line;

/// Why there is no lock, or none any more. Where a connection was part of the call it is closed, since what it holds is not
/// certain; so the server frees whatever it held.
#[derive(Debug, thiserror::Error)]
pub enum AdvisoryError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A pooler is in the way, or nobody can tell.
    #[error(transparent)]
    Pooler(#[from] PoolerError),
    /// The server refuses: a deadlock, a cancelled statement, no room in its lock table.
    #[error("{what} failed: {message} (SQLSTATE {sqlstate})")]
    Server {
        /// The statement.
        what: String,
        /// The server's code.
        sqlstate: String,
        /// The server's words, in one line.
        message: String,
    },
    /// The connection ended, and with it every lock of its session.
    #[error("the connection ended before {what} was answered, and its locks with it: {reason}")]
    Lost {
        /// The statement.
        what: String,
        /// What is known.
        reason: String,
    },
    /// A call was given up before the server answered it, so nobody knows what the session holds.
    #[error("an earlier call on this connection was given up half way: it is closed, and its locks are free")]
    GivenUp,
}

impl AdvisoryError {
    /// The error of a statement.
    pub(super) fn of(what: &str, error: &tokio_postgres::Error) -> Self {
        let what = what.to_owned();
        match error.as_db_error() {
            Some(db) => Self::Server {
                what,
                sqlstate: db.code().code().to_owned(),
                message: one_line(db.message()).into_owned(),
            },
            None => Self::Lost { what, reason: words(error) },
        }
    }

    /// The server's code, where it was the server that refused.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { sqlstate, .. } => Some(sqlstate),
            Self::Connect(error) => error.sqlstate(),
            _ => None,
        }
    }
}

/// An error of the driver with its causes, in one line.
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        return one_line(&format!("{} (SQLSTATE {})", db.message(), db.code().code())).into_owned();
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    one_line(&text).into_owned()
}
