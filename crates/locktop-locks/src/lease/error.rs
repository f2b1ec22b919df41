//! What can go wrong with a lease.

use std::time::Duration;

use super::SHORTEST;
use crate::call::CallError;
use pg_connect::error::ConnectError;

/// Why the holder has to stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The server says that it is not ours any more.
    #[error("lease {id} is lost: it has expired, or another owner holds it")]
    Lost {
        /// `distlock.id` of the lease.
        id: i32,
    },
    /// No renewal was confirmed in time, and soon somebody else may have it.
    #[error("lease {id} may be lost: no renewal was confirmed in time ({reason})")]
    MayBeLost {
        /// `distlock.id` of the lease.
        id: i32,
        /// What came of the last renewal that was tried: an error, or that no answer came.
        reason: String,
    },
}

/// Why a call did not do what it is there for.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// A request that no lease can be made of.
    #[error("a lease needs an owner and a term of at least {} ms", SHORTEST.as_millis())]
    Request,
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server has no such function, refuses, or is gone.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The write is refused: the lease is not ours any more.
    #[error("{0}")]
    Fenced(String),
    /// No answer came in time: the call may have been done all the same.
    #[error("no answer to {what} within {} ms", .limit.as_millis())]
    Silent {
        /// The function of the schema that was called, such as `lease_acquire`.
        what: &'static str,
        /// How long an answer was waited for.
        limit: Duration,
    },
    /// Somebody has the row locked, so the call left it alone.
    #[error("the row of lease {id} is locked by another session: {what} could not change it")]
    Locked {
        /// `distlock.id` of the lease.
        id: i32,
        /// The function of the schema that was called: `lease_renew` or `lease_release`.
        what: &'static str,
    },
}

impl LeaseError {
    /// The error of a function in this schema, whose name is in quotes.
    pub(super) fn of(what: &'static str, schema: &str, error: &tokio_postgres::Error) -> Self {
        match CallError::of(what, schema, error) {
            CallError::Server { sqlstate, message, .. } if sqlstate == "LT001" => Self::Fenced(message),
            other => Self::Call(other),
        }
    }
}
