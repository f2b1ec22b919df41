use std::borrow::Cow;
use std::time::Duration;

use crate::lease::LeaseId;
use locktop_base::text::one_line_prefix;
use pg_connect::error::ConnectError;
use pg_connect::{message, refusal};
use tokio_postgres::error::SqlState;

/// Characters of a message that are kept: a server may send any amount.
const MESSAGE: usize = 300;
/// The SQLSTATE of `assert_lease`.
const FENCED: &str = "LT001";

/// Why a request failed. A lock that another session holds is no error.
///
/// The connection of an advisory lock is closed after an error that leaves it uncertain what it holds; the server releases it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The pool did not provide a connection; the message is the pool's. If the server refused a new connection, the error is
    /// [`Error::Server`].
    #[error("no connection from the pool: {0}")]
    Pool(String),
    /// An invalid request, such as a semaphore without permits or a lease whose term is too short.
    #[error("{0}")]
    Request(Cow<'static, str>),
    /// A pooler is between the client and the server, or that cannot be determined.
    #[error(transparent)]
    Pooler(#[from] PoolerError),
    /// The server has no such function or table, or not in this schema.
    #[error("the schema {schema} has no {what}: run \"locktop schema install\" ({message})")]
    NotInstalled {
        /// The name of the schema, in double quotes.
        schema: String,
        /// The name of the function or table, without its schema.
        what: &'static str,
        /// The server's error message, in one line of at most 300 characters.
        message: String,
    },
    /// The server refused, and did nothing: a deadlock, a cancelled statement, no room in its lock table.
    #[error("{what} failed: {message} (SQLSTATE {sqlstate})")]
    Server {
        /// The lock, by the comment of the statement: `lock invoice:7`; or the call in it, or the name of the function.
        what: String,
        /// Its SQLSTATE, five characters (appendix "PostgreSQL Error Codes").
        sqlstate: String,
        /// The server's error message, in one line of at most 300 characters.
        message: String,
    },
    /// The connection failed. It is not known whether the request was executed; the advisory locks of the session are released.
    #[error("the connection failed in {what}: {reason}")]
    Disconnected {
        /// As for [`Error::Server`].
        what: String,
        /// The client library's description of the broken connection.
        reason: String,
    },
    /// The answer was not the expected one: a function of another version of the schema, or no session behind a pooler.
    #[error("unexpected answer to {what}: {reason}")]
    Answer {
        /// The name of the function or table.
        what: String,
        /// The client library's description, or that there was no row.
        reason: String,
    },
    /// No answer in time; the request may have been executed all the same.
    #[error("no answer to {what} within {}", shown(*.limit))]
    Silent {
        /// As for [`Error::Server`].
        what: String,
        /// How long it waited for an answer; for an advisory lock 10 s beyond the wait for the lock.
        limit: Duration,
    },
    /// The lock that the work needs is, or may be, no longer held.
    #[error(transparent)]
    NotHeld(#[from] Lost),
    /// The write is refused: the lease is no longer held.
    #[error("{0}")]
    Fenced(String),
    /// Another session has the row of a lease locked, so the call left it unchanged.
    #[error("the row of lease {id} is locked by another session: {what} could not change it")]
    Locked {
        /// Its number or name.
        id: LeaseId,
        /// The function of the schema that was called: `lease_renew` or `lease_release`.
        what: &'static str,
    },
    /// Too few Redis servers agreed.
    #[error("{key}: {granted} of {servers} servers agreed, and {quorum} are needed: {}", .faults.join("; "))]
    NoQuorum {
        /// The key of the lock in Redis.
        key: String,
        /// Servers that set the key.
        granted: u32,
        /// Servers that must agree: more than half of them.
        quorum: u32,
        /// Servers that were asked, including those without an answer.
        servers: u32,
        /// The problem of each of the others, in one line.
        faults: Vec<String>,
    },
    /// A majority of Redis servers agreed, but nothing was left of the term.
    #[error("{key}: the servers took {} ms to agree, longer than the lock lasts", .elapsed.as_millis())]
    TooSlow {
        /// The key of the lock in Redis.
        key: String,
        /// How long it took, from before the first request was sent.
        elapsed: Duration,
    },
}

impl Error {
    pub(crate) fn invalid(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Request(what.into())
    }

    /// The request to a pool, for an error message.
    #[cfg(any(feature = "bb8", feature = "deadpool", feature = "sqlx"))]
    pub(crate) const POOL: &str = "a connection for the pool";

    /// The error of a pool that gives no connection, with its causes, which the pool's message lacks.
    #[cfg(any(feature = "bb8", feature = "deadpool"))]
    pub(crate) fn pool(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        let driver = causes.clone().find_map(|error| error.downcast_ref::<tokio_postgres::Error>());
        if let Some(db) = driver.and_then(refusal) {
            return Self::refused(Self::POOL, Refusal::server(db.code().code(), db.message()));
        }
        let said = driver.map(message);
        Self::Pool(
            said.unwrap_or_else(|| causes.by_ref().map(ToString::to_string).collect::<Vec<_>>().join(": ")),
        )
    }

    pub(crate) fn silent(what: &str, limit: Duration) -> Self {
        Self::Silent { what: named(what), limit }
    }

    /// The error of this statement.
    pub(crate) fn refused(what: &str, refusal: Refusal) -> Self {
        let what = named(what);
        match refusal {
            Refusal::Server { sqlstate, message } => Self::Server { what, sqlstate, message },
            Refusal::Lost(reason) => Self::Disconnected { what, reason },
        }
    }

    /// The error of a function or table in `schema`, a quoted name.
    pub(crate) fn of(what: &'static str, schema: &str, error: &tokio_postgres::Error) -> Self {
        let absent = [
            SqlState::UNDEFINED_FUNCTION,
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
            SqlState::INVALID_SCHEMA_NAME,
        ];
        match Refusal::from(error) {
            Refusal::Server { sqlstate, message } if sqlstate == FENCED => Self::Fenced(message),
            Refusal::Server { sqlstate, message } if absent.iter().any(|code| code.code() == sqlstate) => {
                Self::NotInstalled { schema: schema.to_owned(), what, message }
            }
            refusal => Self::refused(what, refusal),
        }
    }

    pub(crate) fn no_row(what: &'static str) -> Self {
        Self::Answer { what: what.to_owned(), reason: "no row was returned".to_owned() }
    }

    pub(crate) fn column(what: &'static str, error: &tokio_postgres::Error) -> Self {
        Self::Answer { what: what.to_owned(), reason: message(error) }
    }

    /// Whether the same request may succeed later: the server is out of reach, or out of resources (class 53), shutting down
    /// (57), or chose this request as the victim of a deadlock or a conflict (40).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Disconnected { .. }
            | Self::Silent { .. }
            | Self::Locked { .. }
            | Self::Pool(_)
            | Self::NoQuorum { .. }
            | Self::TooSlow { .. }
            | Self::Pooler(PoolerError::Unknown(_)) => true,
            Self::Connect(error) | Self::Pooler(PoolerError::Second(error)) => {
                !error.needs_password() && error.sqlstate().is_none_or(is_passing)
            }
            Self::Server { sqlstate, .. } => is_passing(sqlstate),
            _ => false,
        }
    }

    /// Whether the same transaction may succeed when it is tried again at once: it conflicted with another one (class 40).
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.sqlstate().is_some_and(|code| code.starts_with("40"))
    }

    /// The server's SQLSTATE, if the server refused.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { sqlstate, .. } => Some(sqlstate),
            Self::Fenced(_) => Some(FENCED),
            Self::Connect(error) | Self::Pooler(PoolerError::Second(error)) => error.sqlstate(),
            _ => None,
        }
    }
}

/// A statement in a few words: its comment, such as `lock invoice:7`, or the first call of a function for advisory locks in it.
fn named(statement: &str) -> String {
    let comment =
        statement.strip_prefix("/* ").and_then(|rest| rest.split_once(" */")).map(|(comment, _)| comment);
    let call = || {
        let at =
            ["pg_advisory_", "pg_try_advisory_"].into_iter().filter_map(|name| statement.find(name)).min()?;
        let (call, _) = statement.get(at..)?.split_once(')')?;
        Some(format!("{call})"))
    };
    let words = comment.map(str::to_owned).or_else(call);
    one_line_prefix(words.as_deref().unwrap_or(statement), MESSAGE).into_owned()
}

fn shown(limit: Duration) -> String {
    if limit.subsec_nanos() == 0 {
        format!("{} s", limit.as_secs())
    } else {
        format!("{} ms", limit.as_millis())
    }
}

fn is_passing(sqlstate: &str) -> bool {
    ["08", "40", "53", "57"].iter().any(|class| sqlstate.starts_with(class))
}

/// Why a lock is, or may be, no longer held: its holder must stop.
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
    /// The server reports that the lease is no longer held.
    #[error("lease {id} is lost: it has expired, or another owner holds it")]
    Lease {
        /// Its number or name.
        id: LeaseId,
    },
    /// No renewal of the lease was confirmed in time, and another owner may soon hold it.
    #[error("lease {id} may be lost: no renewal was confirmed in time ({reason})")]
    NotRenewed {
        /// Its number or name.
        id: LeaseId,
        /// The result of the last renewal attempt: an error, or that no answer came.
        reason: String,
    },
    /// So many Redis servers no longer have the value that no majority is left: the key was deleted, or has another client's
    /// value.
    #[error("the lock is lost: {gone} of {servers} servers no longer have it")]
    Gone {
        /// Servers that answered that they do not have the value.
        gone: u32,
        /// Servers that were asked, including those without an answer.
        servers: u32,
    },
    /// No majority of the Redis servers confirmed a renewal before the term ended.
    #[error("the lock may be lost: it was not renewed in time")]
    Silent,
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
            Some(db) => Self::server(db.code().code(), db.message()),
            None => Self::Lost(message(error)),
        }
    }
}

impl Refusal {
    pub(crate) fn server(sqlstate: &str, message: &str) -> Self {
        Self::Server {
            sqlstate: sqlstate.to_owned(),
            message: one_line_prefix(message, MESSAGE).into_owned(),
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
