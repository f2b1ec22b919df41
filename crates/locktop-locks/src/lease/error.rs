use std::time::Duration;

use super::SHORTEST;
use crate::call::CallError;
use pg_connect::error::ConnectError;

/// Why the holder must stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The server reports that the lease is no longer held.
    #[error("lease {id} is lost: it has expired, or another owner holds it")]
    Lost {
        /// `distlock.id` of the lease.
        id: i32,
    },
    /// No renewal was confirmed in time, and another owner may soon hold the lease.
    #[error("lease {id} may be lost: no renewal was confirmed in time ({reason})")]
    MayBeLost {
        /// `distlock.id` of the lease.
        id: i32,
        /// The result of the last renewal attempt: an error, or that no answer came.
        reason: String,
    },
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The request has no owner, or its term is too short.
    #[error("a lease needs an owner and a term of at least {} ms", SHORTEST.as_millis())]
    Request,
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server has no such function, refused, or is unreachable.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The write is refused: the lease is no longer held.
    #[error("{0}")]
    Fenced(String),
    /// No answer came in time; the call may have been executed all the same.
    #[error("no answer to {what} within {} ms", .limit.as_millis())]
    Silent {
        /// The function that was called, such as `lease_acquire`; `pg_advisory_lock` is the queue.
        what: &'static str,
        /// How long the call waited for an answer.
        limit: Duration,
    },
    /// Another session has the row locked, so the call left it unchanged.
    #[error("the row of lease {id} is locked by another session: {what} could not change it")]
    Locked {
        /// `distlock.id` of the lease.
        id: i32,
        /// The function of the schema that was called: `lease_renew` or `lease_release`.
        what: &'static str,
    },
}

impl LeaseError {
    /// The error of a function in `schema`, a quoted name.
    pub(super) fn of(what: &'static str, schema: &str, error: &tokio_postgres::Error) -> Self {
        match CallError::of(what, schema, error) {
            CallError::Server { sqlstate, message, .. } if sqlstate == "LT001" => Self::Fenced(message),
            other => Self::Call(other),
        }
    }

    pub(super) fn no_row(what: &'static str) -> Self {
        CallError::Lost { what, reason: "no row was returned".to_owned() }.into()
    }
}
