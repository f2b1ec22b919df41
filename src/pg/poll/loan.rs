//! A poll behind a pooler that lends a session of the server for one transaction.
//!
//! Each poll is one transaction there: it makes the session's settings, prepares its statements, reads, and goes back. Going back takes all
//! settings with it, for a setting belongs to its transaction (PostgreSQL's documentation, "SET"). Prepared statements do not, and are
//! closed before, by name. Where the connection breaks in between, a pooler closes the session too, since a transaction is open in it.

use futures_util::future::{join, join5};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use super::prepare::{self, Prepared, Statements};
use super::{Limits, OpenError, PollError, opening, pooler};
use crate::pg::scope::Scope;
use crate::pg::sql;
use pg_connect::connect::SearchPath;
use pg_connect::{message, refusal};

/// Begins it. What a statement has to be certain of is set anew: whatever the session was left with is not ours.
const BEGIN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL standard_conforming_strings = on";

/// Where nobody goes on with it, a transaction must not keep the session of others for long.
const IDLE: &str = "SET idle_in_transaction_session_timeout = 10000";

/// How a session is had, for one poll after the other.
#[derive(Debug)]
pub(super) struct Loan {
    path: SearchPath,
    /// What guards tables, as in [`sql::reading`].
    reading: String,
    limits: Limits,
}

/// A session that is had for one poll.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) statements: Statements,
    pub(super) own_pid: i32,
}

/// What a connection needs before its first poll, all of it in one transaction. The statements are gone with it.
pub(super) async fn prepare(client: &Client, limits: &Limits) -> Result<Prepared, OpenError> {
    let setup = |error: Error| OpenError::Setup(message(&error));
    // Of a pooler that lends sessions by the statement: a protocol violation.
    client.batch_execute(BEGIN).await.map_err(|error| match error.code() {
        Some(&SqlState::PROTOCOL_VIOLATION) => pooler::refused("statement", "a look takes a transaction"),
        _ => setup(error),
    })?;
    let mut ready = Box::pin(prepare::prepare(client, limits, Scope::Open)).await?;
    give_back(client, ready.statements.take()).await.map_err(setup)?;
    Ok(ready)
}

impl Loan {
    pub(super) fn new(path: SearchPath, limits: &Limits) -> Self {
        Self { path, reading: sql::reading(&limits.trusted_owners), limits: limits.clone() }
    }

    /// Begins, in one round trip.
    pub(super) async fn begin(&self, client: &Client) -> Result<Lent, PollError> {
        let (begun, set, (reading, idle), pid, statements) = join5(
            client.batch_execute(BEGIN),
            opening::settings(client, &self.limits, &self.path),
            join(client.batch_execute(&self.reading), client.batch_execute(IDLE)),
            client.query_typed_one("SELECT pg_catalog.pg_backend_pid()", &[]),
            Box::pin(Statements::prepare(client)),
        )
        .await;
        let lost = |error: Error| PollError::Lost(message(&error));
        begun.and(set).and(reading).and(idle).map_err(lost)?;
        let own_pid = pid.and_then(|row| row.try_get(0)).map_err(lost)?;
        Ok(Lent { statements: statements.map_err(lost)?, own_pid })
    }
}

/// Gives the session back as it was.
pub(super) async fn give_back(client: &Client, statements: Option<Statements>) -> Result<(), Error> {
    // The driver closes each as soon as nobody has it any more, in the order of what is sent.
    drop(statements);
    match client.batch_execute(&format!("ROLLBACK; DEALLOCATE {}", sql::GUARD)).await {
        // Where it never was there, there is nothing to take back.
        Err(error) if refusal(&error).is_none() => Err(error),
        _ => Ok(()),
    }
}
