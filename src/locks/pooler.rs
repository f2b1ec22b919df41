//! Poolers in transaction mode, behind which no session lock may be taken: the session that gets it is somebody else's
//! a moment later, and nobody can give it back.
//!
//! What tells: a second connection begins a transaction. Such a pooler hands it the server connection that the first one
//! used, for that one is idle; or, where others use the pool too, it gives either of them another connection the next time it
//! begins something. Neither ever happens to a session of one's own. In a pool that others keep busy a single try may by chance
//! look as if all was well, so there are several. (That the process id in the start-up message differs proves a pooler, not
//! its mode; and that a connection has kept its process id over several statements proves nothing, since a pool with
//! nobody else in it hands out the same one each time.)

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
/// The same in a transaction that stays open.
const BEGIN: &str = "BEGIN; SELECT pg_catalog.pg_backend_pid()";

/// How often both are asked again.
const TRIES: usize = 6;

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
    let own = who(first, WHO).await?;
    let second = listen(info).await.map_err(PoolerError::Second)?;
    let client = &second.client;
    let theirs = who(client, BEGIN).await?;
    let mut moved = own == theirs;
    for _ in 0..TRIES {
        // Not once the answer is clear: in a pool of one connection the first would wait for ever.
        moved = moved || who(first, WHO).await? != own || again(client).await? != theirs;
    }
    let _ = tokio::time::timeout(PATIENCE, client.batch_execute("ROLLBACK")).await;
    second.close(Duration::from_secs(1)).await;
    if moved { Err(PoolerError::Transactions) } else { Ok(()) }
}

async fn who(client: &Client, question: &str) -> Result<String, PoolerError> {
    let pid = ask(client, question).await?.iter().find_map(|part| match part {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    pid.ok_or_else(|| PoolerError::Unknown("the server did not say who it is".to_owned()))
}

async fn ask(client: &Client, question: &str) -> Result<Vec<SimpleQueryMessage>, PoolerError> {
    let answer = tokio::time::timeout(PATIENCE, client.simple_query(question)).await;
    answer
        .map_err(|_| PoolerError::Unknown(format!("no answer within {} s", PATIENCE.as_secs())))?
        .map_err(|error| PoolerError::Unknown(message(&error)))
}

/// The same in another transaction: the pool may have given the connection away in between.
async fn again(client: &Client) -> Result<String, PoolerError> {
    ask(client, "ROLLBACK").await?;
    who(client, BEGIN).await
}
