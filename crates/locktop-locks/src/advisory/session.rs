use std::time::Duration;

use super::call::{Call, Level};
use super::error::AdvisoryError;
use super::source::{Conn, Refusal, within};
use super::{Key, Mode, Wait};
use crate::pooler::Ask;
use locktop_base::clock;

/// Longest wait for an answer that nothing on the server delays; for a lock, in addition to its own wait.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of comments before a statement, of the 1,024 that `pg_stat_activity` keeps of it.
const SHOWN: usize = 800;
const LOCK_NOT_AVAILABLE: &str = "55P03";
const QUERY_CANCELED: &str = "57014";
const INVALID_PARAMETER_VALUE: &str = "22023";

/// A connection that may hold locks: dropped, it is closed, unless it is given back.
pub(super) struct Session<C: Conn>(Option<C>);

impl<C: Conn> Drop for Session<C> {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            conn.discard();
        }
    }
}

impl<C: Conn> Ask for Session<C> {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        match &mut self.0 {
            Some(conn) => conn.ask(sql).await,
            None => Err(Refusal::Lost("it was released".to_owned())),
        }
    }
}

impl<C: Conn> Session<C> {
    pub(super) fn new(conn: C) -> Self {
        Self(Some(conn))
    }

    /// It holds nothing any more.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }

    /// See [`Conn::ended`].
    pub(super) async fn ended(&mut self) -> String {
        match &mut self.0 {
            Some(conn) => conn.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Takes all the locks in this order, or none; the process id of the backend that has them, or `None` if they are not
    /// granted in time. If this is dropped, or fails without a server's error, the connection can only be closed.
    pub(super) async fn lock(
        &mut self,
        locks: &[(Key, Mode)],
        wait: Wait,
    ) -> Result<Option<i32>, AdvisoryError> {
        let granted = match wait.lock_timeout() {
            None => self.ask(Some(TIMEOUT), &try_all::<C>(locks)).await?,
            Some(limit) => {
                let start = clock::monotonic();
                match self.wait(locks, wait, limit).await {
                    Ok(pid) => pid,
                    Err(error) if is_late(&error, wait, start.elapsed()) => None,
                    Err(error) => return Err(error),
                }
            }
        };
        if granted.is_none() && locks.len() > 1 {
            self.unlock_all().await?;
        }
        Ok(granted.map(|pid| pid.parse().unwrap_or_default()))
    }

    /// Several statements in one message are one transaction: the settings end with it, even if it fails, and the locks do not
    /// (protocol: "Multiple Statements in a Simple Query"). A server that checks its client does not grant a lock to nobody;
    /// some systems cannot watch a socket.
    async fn wait(
        &mut self,
        locks: &[(Key, Mode)],
        wait: Wait,
        limit: u32,
    ) -> Result<Option<String>, AdvisoryError> {
        let calls: Vec<String> =
            locks.iter().map(|(key, mode)| Call::Lock(Level::Session, *mode, key.number()).call()).collect();
        // The limit of a single lock is the server's lock_timeout, which says so; that of all of them together is the statement's.
        let together = if locks.len() > 1 { limit } else { 0 };
        let message = |check: &str| {
            format!(
                "{}{}SET LOCAL statement_timeout = {together}; SET LOCAL lock_timeout = {limit}; {check}\
                 SELECT {}; SELECT pg_catalog.pg_backend_pid()",
                comment(locks),
                C::SETTINGS,
                calls.join(", ")
            )
        };
        let sql = message("SET LOCAL client_connection_check_interval = 1000; ");
        match self.ask(wait.timeout(), &sql).await {
            Err(error) if error.sqlstate() == Some(INVALID_PARAMETER_VALUE) => {
                self.ask(wait.timeout(), &message("")).await
            }
            answer => answer,
        }
    }

    /// The first of these that is free, exclusively, with the process id of the backend that has it. One statement asks for
    /// one after the other.
    pub(super) async fn first_free(&mut self, keys: &[Key]) -> Result<Option<(i32, Key)>, AdvisoryError> {
        let calls = keys.iter().map(|key| Call::Try(Level::Session, Mode::Exclusive, key.number()).call());
        let cases: Vec<String> =
            calls.enumerate().map(|(at, call)| format!("WHEN {call} THEN {at}")).collect();
        let sql = format!(
            "{}SELECT pg_catalog.concat(CASE {} END, ' ', pg_catalog.pg_backend_pid())",
            C::SETTINGS,
            cases.join(" ")
        );
        let answer = self.ask(Some(TIMEOUT), &sql).await?.unwrap_or_default();
        let (at, pid) = answer.split_once(' ').unwrap_or_default();
        let key = at.parse().ok().and_then(|at: usize| keys.get(at));
        Ok(key.map(|key| (pid.parse().unwrap_or_default(), key.clone())))
    }

    /// Releases locks, the last taken first; whether all of them were held. The comment names `shown`, which may be another
    /// one that is still held.
    pub(super) async fn unlock(
        &mut self,
        locks: &[(Key, Mode)],
        shown: &[(Key, Mode)],
    ) -> Result<bool, AdvisoryError> {
        let calls: Vec<String> =
            locks.iter().rev().map(|(key, mode)| Call::Unlock(*mode, key.number()).call()).collect();
        let sql = format!("{}SELECT pg_catalog.concat({})", comment(shown), calls.join(", "));
        let answer = self.ask(Some(TIMEOUT), &sql).await?.unwrap_or_default();
        Ok(answer.len() == locks.len() && !answer.contains('f'))
    }

    pub(super) async fn unlock_all(&mut self) -> Result<(), AdvisoryError> {
        self.ask(Some(TIMEOUT), &format!("SELECT {}", Call::UnlockAll.call())).await.map(drop)
    }

    pub(super) async fn ask(
        &mut self,
        limit: Option<Duration>,
        sql: &str,
    ) -> Result<Option<String>, AdvisoryError> {
        within(limit, sql, Ask::ask(self, sql)).await
    }
}

/// Whether a wait was ended by its own limit. A statement that is cancelled before is an error: somebody else did that.
fn is_late(error: &AdvisoryError, wait: Wait, waited: Duration) -> bool {
    match (error.sqlstate(), wait) {
        (Some(LOCK_NOT_AVAILABLE), _) => true,
        (Some(QUERY_CANCELED), Wait::AtMost(limit)) => waited >= limit,
        _ => false,
    }
}

/// The names, as far as `pg_stat_activity` keeps them.
fn comment(locks: &[(Key, Mode)]) -> String {
    let mut all = String::new();
    for name in locks.iter().filter_map(|(key, _)| key.comment()) {
        if all.len() + name.len() < SHOWN {
            all.push_str(&name);
        }
    }
    all
}

/// `CASE` and `AND` ask for one after the other, and stop at the first that is not free ("Expression Evaluation Rules").
fn try_all<C: Conn>(locks: &[(Key, Mode)]) -> String {
    let calls: Vec<String> =
        locks.iter().map(|(key, mode)| Call::Try(Level::Session, *mode, key.number()).call()).collect();
    let all = calls.join(" AND ");
    let (comment, settings) = (comment(locks), C::SETTINGS);
    format!("{comment}{settings}SELECT CASE WHEN {all} THEN pg_catalog.pg_backend_pid() END")
}
