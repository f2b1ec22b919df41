//! A whole transaction in one message.
//!
//! Several statements in one message of the simple protocol are one transaction, which always ends with the message
//! (PostgreSQL's documentation, "Multiple Statements in a Simple Query"). Nothing remains open if the call is cancelled
//! or an error occurs midway, no setting remains, and a pooler sends all of it to one session.

use std::borrow::Cow;
use std::time::Duration;

use locktop_base::Timestamp;
use pg_connect::connect::local_settings;
use pg_connect::refusal;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::literal::{plain, unpacked};
use crate::schema::words;
use crate::trust::untrusted;

/// Longest wait for a lock, in ms. Functions may have limits of their own.
const LOCK_TIMEOUT: u32 = 2_000;
/// Longest time for one statement, in ms.
const STATEMENT_TIMEOUT: u32 = 8_000;
/// How long to wait for a server that does not answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the transaction may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The transaction is `READ ONLY`: the server refuses every write in it.
    ReadOnly,
    /// The transaction is `READ WRITE`: its changes are committed with the message.
    ReadWrite,
}

/// Why a message was not answered, and whether it may have been executed all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The server refused, and the transaction was rolled back.
    #[error("{message} ({code})")]
    Refused {
        /// Its SQLSTATE, five characters (appendix "PostgreSQL Error Codes").
        code: String,
        /// Message, detail and hint in one line.
        message: String,
    },
    /// Something that was to be used belongs to an owner that is not trusted: which one, and the remedy. Nothing was done.
    #[error("{0}")]
    Untrusted(String),
    /// The connection was lost. It is not known whether the transaction was committed.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// No answer in time. It is not known whether the transaction was committed.
    #[error("the server has not answered for {} s", TIMEOUT.as_secs())]
    Silent,
    /// The transaction was committed, but the answer, which reports what was done, cannot be read.
    #[error("the answer cannot be read: {0}")]
    Unread(String),
}

impl Unanswered {
    /// The SQLSTATE if the server refused: then nothing was done.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Untrusted(_) => Some("22P02"),
            Self::Lost(_) | Self::Silent | Self::Unread(_) => None,
        }
    }
}

/// Runs statements as one transaction, and returns the first column of each row. All settings that matter are in the
/// message: behind a pooler in transaction mode the session has none of locktop's. JIT compilation would take longer than
/// a statement.
///
/// # Errors
/// If the server refuses, is unreachable, or does not answer in time: [`Unanswered::code`] shows whether it is known that
/// nothing was done.
pub async fn send(client: &Client, access: Access, sql: &str) -> Result<Vec<String>, Unanswered> {
    let mut told = send_once(client, access, sql).await;
    let mut sql = Cow::Borrowed(sql);
    // untranslatable_character: nothing was done, and the database cannot store the letters that were sent.
    while let Err(error) = &told
        && error.code() == Some("22P05")
        && let Some(plain) = plain(&sql)
    {
        told = send_once(client, access, &plain).await;
        sql = plain.into();
    }
    told
}

async fn send_once(client: &Client, access: Access, sql: &str) -> Result<Vec<String>, Unanswered> {
    let access = match access {
        Access::ReadOnly => "READ ONLY",
        Access::ReadWrite => "READ WRITE",
    };
    let message = format!(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, {access}; {}\
         SET LOCAL lock_timeout = {LOCK_TIMEOUT}; SET LOCAL statement_timeout = {STATEMENT_TIMEOUT};\
         SET LOCAL row_security = off; SET LOCAL TimeZone = 'UTC'; SET LOCAL jit = off;\n{sql}",
        local_settings()
    );
    let answer = tokio::time::timeout(TIMEOUT, client.simple_query(&message)).await;
    let messages = answer.map_err(|_| Unanswered::Silent)?.map_err(|error| unanswered(&error))?;
    let mut rows = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let column = row.try_get(0).map_err(|error| Unanswered::Unread(error.to_string()))?;
            rows.push(unpacked(column.unwrap_or_default()));
        }
    }
    Ok(rows)
}

/// The end of the connection may arrive as an error of the server (57P01): it is not known what happened to the message
/// then.
fn unanswered(error: &tokio_postgres::Error) -> Unanswered {
    if let Some(reason) = error.as_db_error().and_then(untrusted) {
        return Unanswered::Untrusted(reason);
    }
    match (refusal(error), error.as_db_error()) {
        (Some(db), _) => Unanswered::Refused { code: db.code().code().to_owned(), message: words(db) },
        (None, Some(db)) => Unanswered::Lost(words(db)),
        (None, None) => Unanswered::Lost(error.to_string()),
    }
}

pub use crate::literal::{is, is_cut, note, packed, shown, text};

/// A number as SQL; NULL for `None`.
#[must_use]
pub fn number<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

/// A time as a literal of `timestamptz`, to the microsecond; NULL for `None`.
#[must_use]
pub fn moment(value: Option<Timestamp>) -> String {
    let text = value.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true));
    text.map_or_else(|| "NULL".to_owned(), |text| format!("'{text}'::timestamptz"))
}
