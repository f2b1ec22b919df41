//! Poolers in transaction mode, behind which no session lock may be taken: the session that gets it is somebody else's
//! a moment later, and nobody can give it back.
//!
//! What tells: a second connection begins a transaction. Such a pooler hands it the server connection that the first one
//! used, for that one is idle. Where others use the pool too they may be faster; but then one of them gets that connection,
//! and runs something on it. And where the pooler takes its connections in turn it serves one of the two by another connection
//! than before. None of these ever happens to a session of one's own. (That the process id in the start-up message differs proves a pooler,
//! not its mode; and that a connection kept its process id over several statements proves nothing, since a pool with nobody
//! else in it hands out the same one each time.)

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};

use pg_connect::connect::listen;
use pg_connect::conninfo::ConnInfo;
use pg_connect::error::ConnectError;
use pg_connect::message;

/// Longest wait for one answer. A pool without a free connection lets us wait for ever.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often it is tried: somebody in the pool who says something just then, and nothing after, can make one of them fail.
const TRIES: usize = 3;

/// Why no session lock can be taken, or why that cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolerError {
    /// It is such a pooler.
    #[error(
        "the connection uses a pooler in transaction mode, in which a session lock would belong to other clients: connect directly to the server, or to a pool in session mode"
    )]
    Transactions,
    /// The second connection, without which it cannot be told.
    #[error("the second connection, which detects a pooler, could not be opened: {0}")]
    Second(ConnectError),
    /// One of the two was refused, or did not last.
    #[error("not known whether a pooler is between this program and the server: {0}")]
    Unknown(String),
}

/// Makes sure that `first`, an idle connection made with `info`, is a session of its own. Opens a second one for that.
///
/// # Errors
/// When it is not, and when that cannot be told.
pub async fn refuse_transaction_mode(first: &Client, info: &ConnInfo) -> Result<(), PoolerError> {
    let second = listen(info).await.map_err(PoolerError::Second)?;
    let mut seen = Servers::default();
    for _ in 0..TRIES {
        attempt(first, &second.client, &mut seen).await?;
        if seen.is_lent() {
            break;
        }
    }
    second.close(Duration::from_secs(1)).await;
    if seen.is_lent() { Err(PoolerError::Transactions) } else { Ok(()) }
}

/// Which processes served the two.
#[derive(Debug, Default)]
struct Servers {
    first: BTreeSet<String>,
    second: BTreeSet<String>,
    /// Somebody else was served by who served the first.
    shared: bool,
}

impl Servers {
    /// Whether one of them had more than one.
    fn is_lent(&self) -> bool {
        self.shared || self.first.len() > 1 || self.second.len() > 1
    }
}

/// Asks both. How often is left to chance: a pool of so many connections, taken in turn, would otherwise give each of the two the same one
/// every time. All in the simple protocol, which leaves nothing behind on a pool's connection.
async fn attempt(first: &Client, second: &Client, seen: &mut Servers) -> Result<(), PoolerError> {
    let chance = RandomState::new().hash_one(0);
    let mark = format!("locktop {chance:016x}");
    let question = format!(
        "/* {mark} */ SELECT pid, extract(epoch FROM backend_start) \
         FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())"
    );
    let [own, start] = ask(first, &question).await?;
    let (Some(own), Some(start)) = (own, start) else {
        return Err(PoolerError::Unknown("the role cannot see its own session".to_owned()));
    };
    // What was last run by whoever serves the first; nothing where the server does not keep track of that. With its start: the
    // second connection may have gone to another server.
    let look = format!(
        "BEGIN; SELECT pg_catalog.pg_backend_pid(), (SELECT a.query FROM pg_catalog.pg_stat_get_activity({own}) a \
         WHERE (extract(epoch FROM a.backend_start) OPERATOR(pg_catalog.=) {start}) \
           AND (a.state OPERATOR(pg_catalog.<>) 'disabled') AND (a.query OPERATOR(pg_catalog.<>) ''))"
    );
    let looks = 2 + chance % 3;
    for at in 1..=looks {
        let [theirs, query] = ask(second, &look).await?;
        let theirs = theirs.unwrap_or_default();
        seen.shared |= theirs == own || query.is_some_and(|query| !query.contains(&mark));
        seen.second.insert(theirs);
        // While the second has its transaction open the first is served by another one, if by anybody.
        if at == looks && !seen.is_lent() {
            let [again, _] = ask(first, &question).await?;
            seen.first.extend(again);
        }
        let [_, _] = ask(second, "ROLLBACK").await?;
    }
    seen.first.insert(own);
    Ok(())
}

/// The two columns of the first row, as far as there are any.
async fn ask(client: &Client, question: &str) -> Result<[Option<String>; 2], PoolerError> {
    let answer = tokio::time::timeout(TIMEOUT, client.simple_query(question)).await;
    let answer = answer
        .map_err(|_| PoolerError::Unknown(format!("no answer within {} s", TIMEOUT.as_secs())))?
        .map_err(|error| PoolerError::Unknown(message(&error)))?;
    let row = answer.iter().find_map(|part| match part {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let column = |index| row.and_then(|row| row.try_get(index).ok().flatten()).map(str::to_owned);
    Ok([column(0), column(1)])
}
