//! Whether a pooler is between locktop and the server, and whether it lends its sessions by the transaction.
//!
//! Behind one that does, each statement may run in another session of the server, and the settings and prepared statements of a
//! poll would stay in sessions of which somebody else's application is the next client. So this is asked before anything is set,
//! by statements that leave nothing behind, and each poll is one transaction there ([`super::loan`]).
//!
//! What tells a pooler: it has let us in itself, and named a process of its own making. That of the server is another one.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::announced::announced;
use super::{Limits, OpenError};
use crate::model::snapshot::Pooling;
use locktop_locks::pooler::refuse_transaction_mode;
use pg_connect::conninfo::ConnInfo;
use pg_connect::message;

/// Longest wait for the answer to [`take_back`].
const GOODBYE: Duration = Duration::from_millis(500);

/// How often a question is asked again that the server cancelled.
const TRIES: usize = 10;

/// What is done about it.
const REMEDY: &str = "connect directly to the host and port of the server, or to a pool in session mode";

/// Which process serves us. One message, so one transaction: the limit ends with it, and is there because the server looks a name up
/// in a catalog, which somebody may have locked. The name is in full: nothing of anybody's runs.
fn question(lock_timeout: Duration) -> String {
    format!("SET LOCAL lock_timeout = {}; SELECT pg_catalog.pg_backend_pid()", lock_timeout.as_millis())
}

/// Whether there is a pooler in between.
pub(super) async fn is_between(client: &Client, lock_timeout: Duration) -> Result<bool, OpenError> {
    let question = question(lock_timeout);
    let mut answer = client.simple_query(&question).await;
    // Nothing may be set before, and the database may have a limit that is too short for the first statement of a session.
    for _ in 0..TRIES {
        if !answer.as_ref().is_err_and(|error| error.code() == Some(&SqlState::QUERY_CANCELED)) {
            break;
        }
        answer = client.simple_query(&question).await;
    }
    let answer = answer.map_err(|error| OpenError::Setup(message(&error)))?;
    let serves = answer.iter().find_map(|part| match part {
        SimpleQueryMessage::Row(row) => row.try_get(0).ok()??.parse::<i32>().ok(),
        _ => None,
    });
    Ok(serves != Some(announced(client).await))
}

/// Makes sure, before anything is set in it, that a session is one's own.
///
/// # Errors
/// Where a pooler gives each transaction another one, where that cannot be told, and where nobody answers.
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

/// Whether the pooler in between keeps a session for its client. Opens another connection for that, for a moment. Where nobody can tell,
/// because there is no second one to be had or it says nothing of the first, it is taken for one that does not.
pub(super) async fn keeps_sessions(client: &Client, info: &ConnInfo, timeout: Duration) -> Pooling {
    let asked = Box::pin(refuse_transaction_mode(client, info));
    match tokio::time::timeout(timeout, asked).await {
        Ok(Ok(())) => Pooling::Sessions,
        _ => Pooling::Transactions,
    }
}

/// For what takes more than a pooler in some mode gives.
pub(super) fn refused(mode: &str, why: &str) -> OpenError {
    OpenError::Pooler(format!(
        "a pooler in {mode} mode is between locktop and the server, and {why}: {REMEDY}"
    ))
}

/// For what takes a session of its own.
pub(super) fn no_session() -> OpenError {
    refused("transaction", "this needs a session of its own")
}

/// Takes back what was set in a session, before a pooler gives it to its next client. Most do that themselves, but it can be turned off
/// (`server_reset_query` of pgbouncer).
pub(crate) async fn take_back(client: &Client) {
    let _ = tokio::time::timeout(GOODBYE, client.batch_execute("DISCARD ALL")).await;
}
