//! Poolers in transaction mode, behind which no session lock may be taken: the session that gets it is somebody else's
//! a moment later, and nobody can give it back.
//!
//! What tells: a second connection begins a transaction. Such a pooler hands it the server connection that the first one
//! used, for that one is idle; or it keeps that connection and gives the first one another, the next time it says
//! something. Neither ever happens to a session of one's own. (That the process id in the start-up message differs proves a
//! pooler, not its mode; comparing process ids over several statements proves nothing, since a pool with nobody else in it
//! hands out the same connection each time.)

use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};

use crate::pg::connect::listen;
use crate::pg::conninfo::ConnInfo;
use crate::pg::error::ConnectError;
use crate::pg::poll::message;

/// Longest wait for one answer. A pool without a free connection lets us wait for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks who serves us. In the simple protocol, which leaves nothing behind on a pool's connection.
const WHO: &str = "SELECT pg_catalog.pg_backend_pid()";

/// Why no session lock can be taken, or why that cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolerError {
    /// It is such a pooler.
    #[error(
        "the connection goes through a pooler in transaction mode, behind which a session's lock would be a stranger's: connect to the server itself, or to a pool in session mode"
    )]
    Transactions,
    /// The second connection, without which it cannot be told.
    #[error("a second connection, to tell whether there is a pooler in between, is not to be had: {0}")]
    Second(ConnectError),
    /// One of the two was refused, or did not last.
    #[error("whether there is a pooler in between cannot be told: {0}")]
    Unknown(String),
}

/// Makes sure that `first`, an idle connection made with `info`, is a session of its own. Opens a second one for that.
///
/// # Errors
/// When it is not, and when that cannot be told.
pub async fn refuse_transaction_mode(first: &Client, info: &ConnInfo) -> Result<(), PoolerError> {
    let before = who(first, WHO).await?;
    let second = listen(info).await.map_err(PoolerError::Second)?;
    let other = who(&second.client, "BEGIN; SELECT pg_catalog.pg_backend_pid()").await?;
    // The first one is not asked again when the answer is clear: in a pool of one connection it would wait for ever.
    let moved = before == other || who(first, WHO).await? != before;
    let _ = tokio::time::timeout(PATIENCE, second.client.batch_execute("ROLLBACK")).await;
    second.close(Duration::from_secs(1)).await;
    if moved { Err(PoolerError::Transactions) } else { Ok(()) }
}

async fn who(client: &Client, question: &str) -> Result<String, PoolerError> {
    let answer = tokio::time::timeout(PATIENCE, client.simple_query(question)).await;
    let answer = answer
        .map_err(|_| PoolerError::Unknown(format!("no answer within {} s", PATIENCE.as_secs())))?
        .map_err(|error| PoolerError::Unknown(message(&error)))?;
    let pid = answer.iter().find_map(|part| match part {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    pid.ok_or_else(|| PoolerError::Unknown("the server did not say who it is".to_owned()))
}
