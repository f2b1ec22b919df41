//! Detects poolers in transaction mode, behind which no session lock may be taken: the session that gets it serves
//! another client a moment later, and the lock cannot be released.
//!
//! For the check a second connection begins a transaction. Such a pooler gives it the server connection that the first
//! one used, because that is idle. If others use the pool they may be faster; but then one of them gets that connection,
//! and runs something on it. And a pooler that uses its connections in turn serves one of the two by another connection
//! than before. None of these ever happens to a dedicated session. (A different process id in the start-up message proves
//! a pooler, but not its mode; and a process id that is constant over several statements proves nothing, since a pool
//! without other clients provides the same connection each time.)

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio_postgres::Client;

use crate::PoolerError;
use crate::advisory::source::{self, Refusal};
use pg_connect::connect::listen;
use pg_connect::conninfo::ConnInfo;

/// Longest wait for one answer. A pool without a free connection makes its client wait forever.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Number of attempts: a client of the pool that runs something just then, and nothing after, can make one of them fail.
const TRIES: usize = 3;

/// Ensures that `first`, an idle connection made with `info`, is a session of its own. Opens a second connection for
/// that.
///
/// # Errors
/// If it is not, or if that cannot be determined.
pub async fn refuse_transaction_mode(first: &Client, info: &ConnInfo) -> Result<(), PoolerError> {
    let second = listen(info).await.map_err(PoolerError::Second)?;
    let answer = refuse(&mut &*first, &mut &second.client).await;
    second.close(Duration::from_secs(1)).await;
    answer
}

/// The same for two connections of the same source.
pub(crate) async fn refuse(first: &mut impl Ask, second: &mut impl Ask) -> Result<(), PoolerError> {
    let mut seen = Servers::default();
    for _ in 0..TRIES {
        attempt(first, second, &mut seen).await?;
        if seen.is_pooled() {
            return Err(PoolerError::Transactions);
        }
    }
    Ok(())
}

/// A connection that can be asked.
pub(crate) trait Ask {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal>;
}

impl Ask for &Client {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        source::ask(self, sql).await
    }
}

/// The processes that served the two connections.
#[derive(Debug, Default)]
struct Servers {
    first: BTreeSet<String>,
    second: BTreeSet<String>,
    /// The process of the first connection has served another one.
    shared: bool,
}

impl Servers {
    /// Whether a process was shared, or one of the connections had more than one.
    fn is_pooled(&self) -> bool {
        self.shared || self.first.len() > 1 || self.second.len() > 1
    }
}

/// Queries both connections. The number of polls is random: otherwise a pool with that number of connections, used in
/// turn, would give each of the two the same one every time. All in the simple protocol, which leaves nothing behind on a
/// pool's connection.
async fn attempt(first: &mut impl Ask, second: &mut impl Ask, seen: &mut Servers) -> Result<(), PoolerError> {
    let chance = RandomState::new().hash_one(0);
    let mark = format!("locktop {chance:016x}");
    let question = format!(
        "/* {mark} */ SELECT pg_catalog.concat(pid, ' ', extract(epoch FROM backend_start)) \
         FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())"
    );
    let own = ask(first, &question).await?;
    let Some((own, start)) = own.split_once(' ').filter(|(_, start)| !start.is_empty()) else {
        return Err(PoolerError::Unknown("the role cannot see its own session".to_owned()));
    };
    // The last query of the process that serves the first connection; nothing if the server does not track it. The start of
    // the process is compared, since the second connection may be to another server.
    let probe = format!(
        "BEGIN; SELECT pg_catalog.concat(pg_catalog.pg_backend_pid(), ' ', (SELECT a.query FROM pg_catalog.pg_stat_get_activity({own}) a \
         WHERE (extract(epoch FROM a.backend_start) OPERATOR(pg_catalog.=) {start}) \
           AND (a.state OPERATOR(pg_catalog.<>) 'disabled') AND (a.query OPERATOR(pg_catalog.<>) '')))"
    );
    let probes = 2 + chance % 3;
    for at in 1..=probes {
        let answer = ask(second, &probe).await?;
        let (theirs, query) = answer.split_once(' ').unwrap_or((&answer, ""));
        seen.shared |= theirs == own || (!query.is_empty() && !query.contains(&mark));
        seen.second.insert(theirs.to_owned());
        // While the second connection has its transaction open, the first is served by another process, if by any.
        if at == probes && !seen.is_pooled() {
            let again = ask(first, &question).await?;
            seen.first.extend(again.split_once(' ').map(|(pid, _)| pid.to_owned()));
        }
        ask(second, "ROLLBACK").await?;
    }
    seen.first.insert(own.to_owned());
    Ok(())
}

/// The first column of the last row; empty if there is none.
async fn ask(of: &mut impl Ask, question: &str) -> Result<String, PoolerError> {
    let answer = tokio::time::timeout(TIMEOUT, of.ask(question)).await;
    match answer.map_err(|_| PoolerError::Unknown(format!("no answer within {} s", TIMEOUT.as_secs())))? {
        Ok(answer) => Ok(answer.unwrap_or_default()),
        Err(Refusal::Server { sqlstate, message }) => {
            Err(PoolerError::Unknown(format!("{message} (SQLSTATE {sqlstate})")))
        }
        Err(Refusal::Lost(reason)) => Err(PoolerError::Unknown(reason)),
    }
}
