//! What can go wrong with a lease.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::SHORTEST;
use crate::pg::error::ConnectError;
use crate::pg::poll::message;
use crate::text::one_line_prefix;

/// Characters of a message that are kept: a server may say any amount.
const MESSAGE: usize = 300;

/// Why the holder has to stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The server says that it is not ours any more.
    #[error("lease {id} is lost: it has ended, or somebody else has it")]
    Lost {
        /// The lease.
        id: i32,
    },
    /// No renewal was confirmed in time, and soon somebody else may have it.
    #[error("lease {id} may be lost: no renewal was confirmed in time ({reason})")]
    MayBeLost {
        /// The lease.
        id: i32,
        /// What came of the last attempt.
        reason: String,
    },
}

/// Why a call did not do what it is there for.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// A request that no lease can be made of.
    #[error("a lease needs an owner and a term of at least {} ms", SHORTEST.as_millis())]
    Request,
    /// No connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server has no such functions.
    #[error("the schema {schema} has no leases: \"locktop schema install\" makes them ({message})")]
    NotInstalled {
        /// The schema, in quotes.
        schema: String,
        /// The server's words.
        message: String,
    },
    /// The write is refused: the lease is not ours any more.
    #[error("{0}")]
    Fenced(String),
    /// The server refuses.
    #[error("{what} failed: {message} (SQLSTATE {sqlstate})")]
    Server {
        /// The function.
        what: &'static str,
        /// The server's code.
        sqlstate: String,
        /// The server's words, in one line.
        message: String,
    },
    /// The connection failed.
    #[error("the connection failed in {what}: {reason}")]
    Lost {
        /// The function.
        what: &'static str,
        /// What is known.
        reason: String,
    },
    /// No answer.
    #[error("no answer to {what} within {} ms", .limit.as_millis())]
    Silent {
        /// The function.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// Somebody has the row locked.
    #[error("the row of lease {id} is locked by somebody else: {what} could not touch it")]
    Locked {
        /// The lease.
        id: i32,
        /// The function.
        what: &'static str,
    },
}

impl LeaseError {
    /// The error of a function in this schema.
    pub(super) fn of(what: &'static str, schema: &str, error: &tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            return Self::Lost { what, reason: message(error) };
        };
        let words = one_line_prefix(db.message(), MESSAGE).into_owned();
        let absent = [SqlState::UNDEFINED_FUNCTION, SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
        match db.code() {
            code if absent.contains(code) => Self::NotInstalled { schema: schema.to_owned(), message: words },
            code if code.code() == "LT001" => Self::Fenced(words),
            code => Self::Server { what, sqlstate: code.code().to_owned(), message: words },
        }
    }
}
