//! A poll behind a pooler in transaction mode.
//!
//! Each poll is one transaction: it makes the session's settings, prepares its statements, reads and returns the session.
//! The settings end with the transaction (PostgreSQL's documentation, "SET"). Prepared statements do not, and are closed
//! by name before. If the connection breaks in between, the pooler closes the session, since a transaction is open in it.

use futures_util::future::join3;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, SimpleQueryMessage};

use super::prepare::{self, Prepared, Statements};
use super::{Limits, OpenError, PollError, opening, pooler};
use crate::pg::scope::Scope;
use crate::pg::sql;
use pg_connect::connect::SearchPath;
use pg_connect::{message, refusal};

/// Nothing else is sent before its answer: outside of a transaction a setting would persist.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";

/// How sessions are borrowed, poll by poll.
#[derive(Debug)]
pub(super) struct Loan {
    path: SearchPath,
    /// The guard of tables, as in [`sql::reading`].
    reading: String,
    limits: Limits,
}

#[derive(Debug)]
pub(super) struct Lent {
    pub(super) statements: Statements,
    pub(super) own_pid: i32,
}

/// Everything that a connection needs before its first poll, in one transaction. The statements end with it.
pub(super) async fn prepare(client: &Client, limits: &Limits) -> Result<Prepared, OpenError> {
    let setup = |error: Error| OpenError::Setup(message(&error));
    // A pooler in statement mode reports a protocol violation.
    client.batch_execute(BEGIN).await.map_err(|error| match error.code() {
        Some(&SqlState::PROTOCOL_VIOLATION) => pooler::refused("statement", "a poll takes a transaction"),
        _ => setup(error),
    })?;
    let mut ready = Box::pin(prepare::prepare(client, limits, Scope::Open)).await?;
    give_back(client, ready.statements.take(), true).await.map_err(setup)?;
    Ok(ready)
}

impl Loan {
    pub(super) fn new(path: SearchPath, limits: &Limits) -> Self {
        Self { path, reading: sql::reading(&limits.trusted_owners), limits: limits.clone() }
    }

    /// Takes two round trips. `reads`: there are tables to read.
    pub(super) async fn begin(&self, client: &Client, reads: bool) -> Result<Lent, PollError> {
        let lost = |error: Error| PollError::Lost(message(&error));
        let own_pid = begin(client).await.map_err(lost)?;
        let (set, reading, statements) = join3(
            opening::settings(client, &self.limits, &self.path, Scope::Open),
            client.batch_execute(if reads { &self.reading } else { "" }),
            Box::pin(Statements::prepare(client)),
        )
        .await;
        set.and(reading).map_err(lost)?;
        Ok(Lent { statements: statements.map_err(lost)?, own_pid })
    }
}

/// Begins, and returns the process ID of the session. Its state is left by other clients, so the settings are made each
/// time.
async fn begin(client: &Client) -> Result<i32, Error> {
    let begin =
        format!("{BEGIN}; {} SELECT pg_catalog.pg_backend_pid()", pg_connect::connect::local_settings());
    let answer = client.simple_query(&begin).await?;
    let pid = answer.iter().find_map(|part| match part {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok()??.parse().ok(),
        _ => None,
    });
    Ok(pid.unwrap_or_default())
}

/// Restores and returns the session; `reads` as in the call of `begin`.
pub(super) async fn give_back(
    client: &Client,
    statements: Option<Statements>,
    reads: bool,
) -> Result<(), Error> {
    // The driver closes each statement when its last reference is dropped, in the order of sending.
    drop(statements);
    let guard = if reads { format!("; DEALLOCATE {}", sql::guard()) } else { String::new() };
    match client.batch_execute(&format!("ROLLBACK{guard}")).await {
        // If the guard never existed, there is nothing to undo.
        Err(error) if refusal(&error).is_none() => Err(error),
        _ => Ok(()),
    }
}
