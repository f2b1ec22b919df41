//! What can go wrong with an advisory lock.

use std::time::Duration;

use crate::pooler::PoolerError;
use locktop_base::text::one_line_prefix;
use pg_connect::error::ConnectError;
use pg_connect::message;
use pg_connect::refusal;

/// Characters of a message that are kept: a server may say any amount.
const MESSAGE: usize = 300;

/// Why there is no lock, or none any more. Where a connection was part of the call it is closed, since what it holds is not
/// certain; so the server frees whatever it held.
#[derive(Debug, thiserror::Error)]
pub enum AdvisoryError {
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A pooler is in the way, or nobody can tell.
    #[error(transparent)]
    Pooler(#[from] PoolerError),
    /// The server refuses: a deadlock, a cancelled statement, no room in its lock table.
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
        /// What the client library says of the end of the connection.
        reason: String,
    },
    /// No answer in time. The connection is good for nothing any more, and closed.
    #[error("no answer to {what} within {} s", .limit.as_secs())]
    Silent {
        /// The text of the statement.
        what: String,
        /// How long an answer was waited for: 10 s after the wait for the lock would have ended.
        limit: Duration,
    },
    /// A call was given up before the server answered it, so nobody knows what the session holds.
    #[error(
        "an earlier call on this connection was abandoned: the connection is closed, and its locks are released"
    )]
    GivenUp,
}

impl AdvisoryError {
    /// The error of this statement: [`Self::Server`] where the server refused, otherwise [`Self::Lost`].
    pub(super) fn of(what: &str, error: &tokio_postgres::Error) -> Self {
        let what = what.to_owned();
        match refusal(error) {
            Some(db) => Self::Server {
                what,
                sqlstate: db.code().code().to_owned(),
                message: one_line_prefix(db.message(), MESSAGE).into_owned(),
            },
            None => Self::Lost { what, reason: message(error) },
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
