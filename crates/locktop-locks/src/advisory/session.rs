use std::time::Duration;

use super::source::{Conn, Refusal, within};
use super::{Holder, Key, Mode, Wait};
use crate::Error;
use crate::pooler::Ask;
use locktop_base::{LockKey, clock};

/// Longest wait for an answer that nothing on the server delays; for a lock, in addition to its own wait.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of comments before a statement, of the 1,024 that `pg_stat_activity` keeps of it.
const SHOWN: usize = 800;
/// A message is a transaction, which a timeout may end from 17 on.
const UNLIMITED: &str = "SELECT pg_catalog.set_config('transaction_timeout', '0', true) \
     WHERE pg_catalog.current_setting('transaction_timeout', true) IS NOT NULL; ";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const QUERY_CANCELED: &str = "57014";
const UNTRANSLATABLE_CHARACTER: &str = "22P05";
const INVALID_PARAMETER_VALUE: &str = "22023";

/// A connection that may hold locks. Dropping it closes it; [`Self::give_back`] returns it to its source.
pub(super) struct Session<C: Conn> {
    conn: Option<C>,
    /// Send no comments: the encoding of the database lacks a character of a name.
    is_plain: bool,
    /// Its locks elect a leader.
    pub(super) leads: bool,
}

impl<C: Conn> Drop for Session<C> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            conn.discard();
        }
    }
}

impl<C: Conn> Ask for Session<C> {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        match &mut self.conn {
            Some(conn) => conn.ask(sql).await,
            None => Err(Refusal::Lost("it was released".to_owned())),
        }
    }
}

impl<C: Conn> Session<C> {
    pub(super) fn new(conn: C) -> Self {
        Self { conn: Some(conn), is_plain: false, leads: false }
    }

    /// Returns the connection, which must hold no lock.
    pub(super) fn give_back(mut self) {
        drop(self.conn.take());
    }

    /// See [`Conn::ended`].
    pub(super) async fn ended(&mut self) -> String {
        match &mut self.conn {
            Some(conn) => conn.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Takes all the locks in this order, or none; the process id of the backend that has them, or `None` if they are not
    /// granted in time: one of them may be held all the same then, see [`Self::lock_or_none`]. If this is dropped, or fails
    /// without a server's error, the connection can only be closed.
    pub(super) async fn lock(&mut self, locks: &[(Key, Mode)], wait: Wait) -> Result<Option<i32>, Error> {
        let mut answer = self.lock_once(locks, wait).await;
        if self.is_unknown_text(&answer) {
            answer = self.lock_once(locks, wait).await;
        }
        Ok(answer?.map(|pid| pid.parse().unwrap_or_default()))
    }

    /// The same for a session that holds nothing else: if they are not granted in time, nothing is held.
    pub(super) async fn lock_or_none(
        &mut self,
        locks: &[(Key, Mode)],
        wait: Wait,
    ) -> Result<Option<i32>, Error> {
        let granted = self.lock(locks, wait).await?;
        if granted.is_none() && (locks.len() > 1 || wait.lock_timeout().is_some()) {
            self.ask(Some(TIMEOUT), &format!("SELECT {UNLOCK_ALL}")).await?;
        }
        Ok(granted)
    }

    async fn lock_once(&mut self, locks: &[(Key, Mode)], wait: Wait) -> Result<Option<String>, Error> {
        let Some(limit) = wait.lock_timeout() else {
            let sql = self.try_all(locks);
            return self.ask(Some(TIMEOUT), &sql).await;
        };
        let start = clock::monotonic();
        match self.wait(locks, wait, limit).await {
            Err(error) if is_late(&error, wait, start.elapsed()) => Ok(None),
            answer => answer,
        }
    }

    /// Several statements in one message are one transaction: the settings end with it, even if it fails, and the locks do not
    /// (protocol: "Multiple Statements in a Simple Query"). A server that checks its client cancels the wait of one that
    /// has disconnected; some systems cannot do that.
    async fn wait(&mut self, locks: &[(Key, Mode)], wait: Wait, limit: u32) -> Result<Option<String>, Error> {
        // lock_timeout limits each lock, statement_timeout all of them together.
        let together = if locks.len() > 1 { limit } else { 0 };
        let (comment, settings, calls) = (self.comment(locks), C::SETTINGS, calls(LOCK, locks).join(", "));
        let message = |check: &str| {
            format!(
                "{comment}{settings}{UNLIMITED}SET LOCAL statement_timeout = {together}; SET LOCAL lock_timeout = {limit}; {check}\
                 SELECT {calls}; SELECT pg_catalog.pg_backend_pid()"
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

    /// Takes the first of these that is free, exclusively, and returns it with the process id of the backend. One statement tries
    /// them in order. The comment has the name of all of them.
    pub(super) async fn first_free(
        &mut self,
        keys: &[Key],
        all: &[(Key, Mode)],
    ) -> Result<Option<(i32, Key)>, Error> {
        let calls = keys.iter().map(|key| call(TRY, key, Mode::Exclusive));
        let cases: Vec<String> =
            calls.enumerate().map(|(at, call)| format!("WHEN {call} THEN {at}")).collect();
        let sql = format!(
            "{}SELECT pg_catalog.concat(CASE {} END, ' ', pg_catalog.pg_backend_pid())",
            C::SETTINGS,
            cases.join(" ")
        );
        let named = format!("{}{sql}", self.comment(all));
        let mut answer = self.ask(Some(TIMEOUT), &named).await;
        if self.is_unknown_text(&answer) {
            answer = self.ask(Some(TIMEOUT), &sql).await;
        }
        let answer = answer?.unwrap_or_default();
        let (at, pid) = answer.split_once(' ').unwrap_or_default();
        let key = at.parse().ok().and_then(|at: usize| keys.get(at));
        Ok(key.map(|key| (pid.parse().unwrap_or_default(), key.clone())))
    }

    /// Releases a lock; the comment names those that are kept.
    pub(super) async fn unlock(
        &mut self,
        (key, mode): &(Key, Mode),
        kept: &[(Key, Mode)],
    ) -> Result<(), Error> {
        let call = call(UNLOCK, key, *mode);
        self.ask(Some(TIMEOUT), &format!("{}SELECT {call}", self.comment(kept))).await.map(drop)
    }

    /// Releases a lock if it is held: the server logs a warning when a lock that is not held is released.
    pub(super) async fn unlock_if_held(&mut self, (key, mode): &(Key, Mode)) -> Result<(), Error> {
        let call = call(UNLOCK, key, *mode);
        let own = "l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()";
        self.ask(Some(TIMEOUT), &format!("SELECT {call} {} AND {own}", granted(key, *mode))).await.map(drop)
    }

    /// The session that holds a lock exclusively.
    pub(super) async fn holder(&mut self, key: &Key) -> Result<Option<Holder>, Error> {
        let name = "(SELECT a.application_name FROM pg_catalog.pg_stat_get_activity(l.pid) a)";
        let sql = format!("SELECT pg_catalog.concat(l.pid, ' ', {name}) {}", granted(key, Mode::Exclusive));
        let answer = self.ask(Some(TIMEOUT), &sql).await?;
        Ok(answer.as_deref().and_then(|answer| answer.split_once(' ')).map(|(pid, name)| Holder {
            pid: pid.parse().unwrap_or_default(),
            application_name: name.to_owned(),
        }))
    }

    /// Releases all locks of the session. Returns whether these were all held, each as often as it is listed.
    pub(super) async fn release(&mut self, locks: &[(Key, Mode)]) -> Result<bool, Error> {
        let calls: Vec<String> = locks.iter().rev().map(|(key, mode)| call(UNLOCK, key, *mode)).collect();
        let comment = self.comment(locks);
        let sql = format!("{comment}SELECT pg_catalog.concat({}), {UNLOCK_ALL}", calls.join(", "));
        let answer = self.ask(Some(TIMEOUT), &sql).await?.unwrap_or_default();
        Ok(answer.len() == locks.len() && !answer.contains('f'))
    }

    /// Whether the database lacks a character of the comments. No more are sent then.
    fn is_unknown_text<T>(&mut self, answer: &Result<T, Error>) -> bool {
        let is_new = !self.is_plain && sqlstate(answer) == Some(UNTRANSLATABLE_CHARACTER);
        self.is_plain |= is_new;
        is_new
    }

    /// The names in comments, within what `pg_stat_activity` keeps of a statement.
    fn comment(&self, locks: &[(Key, Mode)]) -> String {
        let mut all = String::new();
        let word = if self.leads { "lead" } else { "lock" };
        for name in locks.iter().filter_map(|(key, _)| key.comment(word)) {
            if !self.is_plain && all.len() + name.len() < SHOWN {
                all.push_str(&name);
            }
        }
        all
    }

    /// `AND` tries the locks in order and stops at the first that is not free: the planner reorders conditions of WHERE only
    /// (`order_qual_clauses` in `createplan.c`).
    fn try_all(&self, locks: &[(Key, Mode)]) -> String {
        let (comment, settings, all) = (self.comment(locks), C::SETTINGS, calls(TRY, locks).join(" AND "));
        format!("{comment}{settings}SELECT CASE WHEN {all} THEN pg_catalog.pg_backend_pid() END")
    }

    pub(super) async fn ask(&mut self, limit: Option<Duration>, sql: &str) -> Result<Option<String>, Error> {
        within(limit, sql, Ask::ask(self, sql)).await
    }
}

/// The rows `l` of `pg_locks` with this lock of this database.
fn granted(key: &Key, mode: Mode) -> String {
    let (class, object, kind) = key.number().fields();
    let name = match mode {
        Mode::Exclusive => "ExclusiveLock",
        Mode::Shared => "ShareLock",
    };
    format!(
        "FROM pg_catalog.pg_locks l, pg_catalog.pg_database d \
         WHERE l.granted AND l.pid IS NOT NULL AND l.locktype OPERATOR(pg_catalog.=) 'advisory' AND l.mode OPERATOR(pg_catalog.=) '{name}' \
           AND l.classid OPERATOR(pg_catalog.=) '{class}' AND l.objid OPERATOR(pg_catalog.=) '{object}' \
           AND l.objsubid OPERATOR(pg_catalog.=) '{kind}' AND d.oid OPERATOR(pg_catalog.=) l.database \
           AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"
    )
}

fn sqlstate<T>(answer: &Result<T, Error>) -> Option<&str> {
    answer.as_ref().err().and_then(Error::sqlstate)
}

/// Whether a wait reached its limit. A statement that was cancelled earlier was cancelled by another session: that is an error.
fn is_late(error: &Error, wait: Wait, waited: Duration) -> bool {
    match (error.sqlstate(), wait) {
        (Some(LOCK_NOT_AVAILABLE), _) => true,
        (Some(QUERY_CANCELED), Wait::AtMost(limit)) => waited >= limit,
        _ => false,
    }
}

/// Waits until the lock is granted; returns nothing.
const LOCK: &str = "pg_advisory_lock";
/// Does not wait; returns whether the lock was granted.
const TRY: &str = "pg_try_advisory_lock";
/// The same two for locks of a transaction.
pub(super) const XACT_LOCK: &str = "pg_advisory_xact_lock";
pub(super) const XACT_TRY: &str = "pg_try_advisory_xact_lock";
/// Releases a lock of the session once; returns whether it was held.
const UNLOCK: &str = "pg_advisory_unlock";
/// Releases all locks of the session; returns nothing.
const UNLOCK_ALL: &str = "pg_catalog.pg_advisory_unlock_all()";

/// A call of one of these functions, for a statement. The key is text in it, so that it can be in one message with its
/// settings, and quoted, since the smallest number cannot be written without quotes: its digits alone are out of range, and
/// the sign is applied afterwards.
pub(super) fn call(function: &str, key: &Key, mode: Mode) -> String {
    let shared = match mode {
        Mode::Exclusive => "",
        Mode::Shared => "_shared",
    };
    let key = match key.number() {
        LockKey::Bigint(key) => format!("'{key}'::pg_catalog.int8"),
        LockKey::Pair(first, second) => format!("'{first}'::pg_catalog.int4, '{second}'::pg_catalog.int4"),
    };
    format!("pg_catalog.{function}{shared}({key})")
}

fn calls(function: &str, locks: &[(Key, Mode)]) -> Vec<String> {
    locks.iter().map(|(key, mode)| call(function, key, *mode)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_21_distinct_statements() {
        let mut all = BTreeSet::from([UNLOCK_ALL.to_owned()]);
        for key in [Key::Bigint(1), Key::Pair(1, 2)] {
            for mode in [Mode::Exclusive, Mode::Shared] {
                all.extend([LOCK, TRY, XACT_LOCK, XACT_TRY, UNLOCK].map(|name| call(name, &key, mode)));
            }
        }
        assert_eq!(all.len(), 21, "{all:#?}");
    }
}
