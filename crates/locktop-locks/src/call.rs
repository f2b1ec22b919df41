//! Calls of the functions that `locktop schema install` creates.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Row};

use crate::SchemaName;
use locktop_base::text::one_line_prefix;
use pg_connect::message;
use pg_connect::refusal;

/// Characters of a message that are kept: a server may send any amount.
const MESSAGE: usize = 300;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server has no such function, or not in this schema.
    #[error("the schema {schema} has no {what}: run \"locktop schema install\" ({message})")]
    NotInstalled {
        /// The name of the schema, in double quotes.
        schema: String,
        /// The name of the function or table, without its schema.
        what: &'static str,
        /// The server's error message, in one line of at most 300 characters.
        message: String,
    },
    /// The server refused, and did nothing.
    #[error("{what} failed: {message} (SQLSTATE {sqlstate})")]
    Server {
        /// The name of the function or table, without its schema.
        what: &'static str,
        /// Its SQLSTATE, five characters (appendix "PostgreSQL Error Codes").
        sqlstate: String,
        /// The server's error message, in one line of at most 300 characters.
        message: String,
    },
    /// The connection failed, or its answer was not the expected one. It is not known whether the call was executed.
    #[error("the connection failed in {what}: {reason}")]
    Lost {
        /// The name of the function or table, without its schema.
        what: &'static str,
        /// The client library's description of the broken connection or the unexpected answer.
        reason: String,
    },
}

impl CallError {
    /// The SQLSTATE of a call that the server refused; `None` for a function that is not installed or a lost connection.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { sqlstate, .. } => Some(sqlstate),
            Self::NotInstalled { .. } | Self::Lost { .. } => None,
        }
    }

    /// Whether the same transaction may succeed when it is tried again: it conflicted with another one (class 40).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.sqlstate().is_some_and(|code| code.starts_with("40"))
    }

    /// The error of a call in `schema`, a quoted name.
    pub(super) fn of(what: &'static str, schema: &str, error: &tokio_postgres::Error) -> Self {
        let Some(db) = refusal(error) else {
            return Self::Lost { what, reason: message(error) };
        };
        let message = one_line_prefix(db.message(), MESSAGE).into_owned();
        let absent = [SqlState::UNDEFINED_FUNCTION, SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
        if absent.contains(db.code()) {
            return Self::NotInstalled { schema: schema.to_owned(), what, message };
        }
        Self::Server { what, sqlstate: db.code().code().to_owned(), message }
    }
}

/// A parameter and its type: nothing is prepared, so the calls work through any pooler.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The rows of `SELECT columns FROM schema.call`, where `what` is the name in `call`.
pub(super) async fn rows<C: GenericClient + Sync>(
    client: &C,
    schema: &SchemaName,
    what: &'static str,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<Row>, CallError> {
    let schema = schema.quoted();
    let sql = sql.replace("@schema@", &schema);
    client.query_typed(&sql, parameters).await.map_err(|error| CallError::of(what, &schema, &error))
}

/// The same for exactly one row.
pub(super) async fn row<C: GenericClient + Sync>(
    client: &C,
    schema: &SchemaName,
    what: &'static str,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<Row, CallError> {
    let rows = rows(client, schema, what, sql, parameters).await?;
    rows.into_iter().next().ok_or_else(|| CallError::Lost { what, reason: "no row was returned".to_owned() })
}

pub(super) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    what: &'static str,
    row: &'a Row,
    index: usize,
) -> Result<T, CallError> {
    row.try_get(index).map_err(|error| CallError::Lost { what, reason: message(&error) })
}
