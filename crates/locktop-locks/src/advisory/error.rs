use std::time::Duration;

use crate::pooler::PoolerError;
use locktop_base::text::one_line_prefix;
use pg_connect::error::ConnectError;
use pg_connect::message;
use pg_connect::refusal;

/// Characters of a message that are kept: a server may send any amount.
const MESSAGE: usize = 300;

/// Why there is no lock, or no longer one. If a connection was part of the call it is closed, since it is uncertain what
/// it holds; so the server releases whatever it held.
#[derive(Debug, thiserror::Error)]
pub enum AdvisoryError {
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
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
    /// A call was abandoned before the server answered it, so it is not known what the session holds.
    #[error(
        "an earlier call on this connection was abandoned: the connection is closed, and its locks are released"
    )]
    GivenUp,
}

impl AdvisoryError {
    /// The error of this statement: [`Self::Server`] if the server refused, otherwise [`Self::Lost`].
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
