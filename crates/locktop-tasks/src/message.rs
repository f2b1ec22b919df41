//! A whole transaction in one message.
//!
//! Several statements in one message of the simple protocol are one transaction, which ends with the message however it ends (PostgreSQL's
//! documentation, "Multiple Statements in a Simple Query"). Nothing is left open when we are cancelled or an error comes in the
//! middle, no setting stays behind, and a pooler sends all of it to one session.

use std::borrow::Cow;
use std::time::Duration;

use locktop_base::Timestamp;
use pg_connect::connect::local_settings;
use pg_connect::refusal;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::literal::{plain, unpacked};
use crate::schema::words;
use crate::trust::untrusted;

/// Longest wait for a lock, in ms. Functions may have a limit of their own.
const LOCK_TIMEOUT: u32 = 2_000;
/// Longest time for one statement, in ms.
const STATEMENT_TIMEOUT: u32 = 8_000;
/// After which a server that does not answer is given up.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the transaction may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The transaction is `READ ONLY`: the server refuses every write in it.
    ReadOnly,
    /// The transaction is `READ WRITE`: what it writes is committed with the message.
    ReadWrite,
}

/// Why a message was not answered, and whether something may have been done all the same.
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
    /// What was to be used belongs to somebody who is not trusted: whose it is, and what helps. Nothing was done.
    #[error("{0}")]
    Untrusted(String),
    /// The connection is gone. Whether the transaction was committed is not known.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// No answer in time. Whether the transaction was committed is not known.
    #[error("the server has not answered for {} s", TIMEOUT.as_secs())]
    Silent,
    /// It was committed, and the answer, which says what was done, makes no sense.
    #[error("the answer cannot be read: {0}")]
    Unread(String),
}

impl Unanswered {
    /// The SQLSTATE where the server refused: then nothing was done.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Untrusted(_) => Some("22P02"),
            Self::Lost(_) | Self::Silent | Self::Unread(_) => None,
        }
    }
}

/// Runs statements as one transaction; the first column of each row that they answer with. All settings that count are in the message:
/// behind a pooler in transaction mode the session has none of ours.
/// Compiling one of them first would take longer than the statement.
///
/// # Errors
/// When the server refuses, is gone, or does not answer in time: [`Unanswered::code`] tells whether it is known that nothing was done.
pub async fn send(client: &Client, access: Access, sql: &str) -> Result<Vec<String>, Unanswered> {
    let mut told = send_once(client, access, sql).await;
    let mut sql = Cow::Borrowed(sql);
    // untranslatable_character: nothing was done, and nothing there has the letters that were sent.
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

/// The end of the connection may come as an error of the server's (57P01): what was going on then is not known.
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

/// A number as SQL; NULL for none.
#[must_use]
pub fn number<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

/// A time as a literal of `timestamptz`, to the microsecond; NULL for none.
#[must_use]
pub fn moment(value: Option<Timestamp>) -> String {
    let text = value.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true));
    text.map_or_else(|| "NULL".to_owned(), |text| format!("'{text}'::timestamptz"))
}
