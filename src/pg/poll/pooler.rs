//! Detects a pooler between locktop and the server, and whether it is in transaction mode.
//!
//! In transaction mode each statement may run in another session of the server, and the settings and prepared statements
//! of a poll would stay in sessions that other applications use next. So this is tested before any setting, with
//! statements that leave nothing behind, and each poll is then one transaction ([`crate::pg::poll::prepare`]).
//!
//! A pooler is recognized by the process that it announces at login, which is not that of the server.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::link::announced;
use super::{Limits, OpenError};
use crate::model::snapshot::Pooling;
use locktop_locks::pooler::refuse_transaction_mode;
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

const GOODBYE: Duration = Duration::from_millis(500);

/// Retries of a question that the server canceled.
const TRIES: usize = 10;

const REMEDY: &str = "connect directly to the host and port of the server, or to a pool in session mode";

/// Asks for the serving process. One message is one transaction, so the limit ends with it. It is needed because the
/// server looks the name up in a catalog, which may be locked. The name is qualified, so that no other function can run.
fn question(lock_timeout: Duration) -> String {
    format!("SET LOCAL lock_timeout = {}; SELECT pg_catalog.pg_backend_pid()", lock_timeout.as_millis())
}

pub(super) async fn is_between(client: &Client, lock_timeout: Duration) -> Result<bool, OpenError> {
    let question = question(lock_timeout);
    let mut answer = client.simple_query(&question).await;
    // Nothing may be set before, and the database may have a time limit too short for the first statement of a session.
    for _ in 0..TRIES {
        if !answer.as_ref().is_err_and(|error| error.code() == Some(&SqlState::QUERY_CANCELED)) {
            break;
        }
        answer = client.simple_query(&question).await;
    }
    let answer = answer.map_err(|error| OpenError::Setup(message(&error)))?;
    let serves = value(&answer).and_then(|pid| pid.parse::<i32>().ok());
    Ok(serves != Some(announced(client).await))
}

/// The first value of an answer.
pub(super) fn value(answer: &[SimpleQueryMessage]) -> Option<&str> {
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten(),
        _ => None,
    })
}

/// Checks, before anything is set in it, that a session belongs to this client.
///
/// # Errors
/// If a pooler uses another session for each transaction, if that cannot be determined, or if the server does not answer.
pub async fn is_own(client: &Client, info: &ConnInfo) -> Result<(), OpenError> {
    let Limits { lock_timeout, poll_timeout, .. } = Limits::default();
    let between = tokio::time::timeout(poll_timeout, is_between(client, lock_timeout)).await;
    if between.map_err(|_| OpenError::Silent)??
        && Box::pin(keeps_sessions(client, info, poll_timeout)).await == Pooling::Transactions
    {
        return Err(no_session());
    }
    Ok(())
}

/// Whether the pooler in between keeps a session for its client. Opens another connection for a moment. If that fails or
/// shows nothing about the first one, transaction mode is assumed.
pub(super) async fn keeps_sessions(client: &Client, info: &ConnInfo, timeout: Duration) -> Pooling {
    let asked = Box::pin(refuse_transaction_mode(client, info));
    match tokio::time::timeout(timeout, asked).await {
        Ok(Ok(())) => Pooling::Sessions,
        _ => Pooling::Transactions,
    }
}

/// For what needs more than a pooler in this mode provides.
pub(super) fn refused(mode: &str, why: &str) -> OpenError {
    OpenError::Pooler(format!(
        "a pooler in {mode} mode is between locktop and the server, and {why}: {REMEDY}"
    ))
}

/// For what needs its own session.
pub(super) fn no_session() -> OpenError {
    refused("transaction", "this needs a session of its own")
}

/// Resets a session before a pooler passes it to its next client. Most poolers do that themselves, but it can be disabled
/// (`server_reset_query` of pgbouncer).
pub(crate) async fn take_back(client: &Client) {
    let _ = tokio::time::timeout(GOODBYE, client.batch_execute("DISCARD ALL")).await;
}
