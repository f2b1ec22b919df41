//! The queue for a lease is an advisory lock: the server queues its waiters in order, and removes a session that ends.
//!
//! The session that has the lock is the first of the queue: only it asks for the lease again and again, and is notified
//! of a release.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::Request;
use super::link::{Attempt, Link};
use crate::Error;
use crate::pooler;
use locktop_base::clock;

/// Longest wait for an answer that nothing on the server delays.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A server that checks its client cancels the wait of one that has disconnected; some systems cannot do that.
const CHECK: &str = "SET LOCAL client_connection_check_interval = 1000; ";
/// The shortest pause: the term is over, but the row is locked.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);

/// The longest wait for a place at the front: a session that waits for a lock holds a snapshot, and VACUUM keeps the rows that it can
/// see. Random, so that requests which go to the end of the queue do not stay together.
fn longest_wait() -> Duration {
    Duration::from_secs(300 + RandomState::new().hash_one(0) % 300)
}

/// Waits for the lease in the queue, or behind a pooler in transaction mode by polling. `None` if it is not
/// granted in time.
pub(super) async fn acquire(
    link: &mut Link,
    request: &Request,
    limit: Duration,
) -> Result<Option<(i64, Duration)>, Error> {
    let start = clock::monotonic();
    let left = || limit.saturating_sub(start.elapsed());
    let Attempt { granted, key, .. } = link.acquire(&request.owner, !limit.is_zero()).await?;
    if granted.is_some() || limit.is_zero() {
        return Ok(granted);
    }
    let info = link.info.clone();
    let testing = pooler::refuse_transaction_mode(link.client().await?, &info);
    match tokio::time::timeout(left(), testing).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => return poll(link, request, left).await,
        Err(_) => return Ok(link.acquire(&request.owner, true).await?.granted),
    }
    while !left().is_zero() {
        link.enter(key, request.retry, left().min(longest_wait())).await?;
        loop {
            link.client().await?;
            if link.queued.is_none() {
                break;
            }
            let attempt = match link.acquire(&request.owner, false).await {
                // The session has ended, and left the queue with it.
                Err(Error::Disconnected { .. }) => {
                    link.close();
                    break;
                }
                attempt => attempt?,
            };
            if attempt.granted.is_some() {
                // The task that renews the lease leaves the queue.
                return Ok(attempt.granted);
            }
            if left().is_zero() {
                link.leave().await;
                return Ok(None);
            }
            let end =
                attempt.left.map_or(Duration::MAX, |left| left.saturating_add(Duration::from_millis(1)));
            link.wait_for_notification(end.min(request.retry).max(SHORTEST_PAUSE).min(left())).await;
        }
    }
    Ok(None)
}

/// With random pauses, so that no order of the clients repeats.
async fn poll(
    link: &mut Link,
    request: &Request,
    left: impl Fn() -> Duration,
) -> Result<Option<(i64, Duration)>, Error> {
    let pause = (request.term / 10).min(request.retry).max(SHORTEST_PAUSE);
    loop {
        let percent = u32::try_from(RandomState::new().hash_one(0) % 100).unwrap_or_default();
        tokio::time::sleep((pause / 2 + pause * percent / 100).min(left())).await;
        let attempt = link.acquire(&request.owner, false).await?;
        if attempt.granted.is_some() || left().is_zero() {
            return Ok(attempt.granted);
        }
    }
}

impl Link {
    /// Waits to be the first of the queue; leaves it if it is not within `limit`.
    async fn enter(&mut self, key: i64, retry: Duration, limit: Duration) -> Result<(), Error> {
        self.client().await?;
        self.queued = Some(key);
        // The server ends the session of one that is suspended or cut off when it is the first: it blocks the others.
        let patience = self.term.clamp(Duration::from_secs(1), TIMEOUT);
        // One message is one transaction (protocol: "Multiple Statements in a Simple Query"): if the wait fails, no setting is
        // left. It listens from the end of the message on, and asks for the lease after that.
        let queue = self.key.clone();
        let sql = |check: &str| {
            format!(
            "SELECT pg_catalog.set_config('transaction_timeout', '0', true)
              WHERE pg_catalog.current_setting('transaction_timeout', true) IS NOT NULL;
             {check}SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {}; SET idle_session_timeout = {};
             SELECT pg_catalog.pg_advisory_lock({}); LISTEN \"locktop_lease_{key}\"",
            milliseconds(limit),
            milliseconds(retry.saturating_add(patience)),
            queue
        )
        };
        let longest = limit.saturating_add(TIMEOUT);
        let mut answer = self.execute(&sql(CHECK), longest).await;
        if sqlstate(&answer) == Some(SqlState::INVALID_PARAMETER_VALUE.code()) {
            answer = self.execute(&sql(""), longest).await;
        }
        if sqlstate(&answer) == Some(SqlState::LOCK_NOT_AVAILABLE.code()) {
            // The server keeps a lock that is granted at that moment (`LockErrorCleanup` in `proc.c`).
            self.leave().await;
            return Ok(());
        }
        answer
    }

    /// Leaves the queue. If the lock, the listening or the setting may remain on the connection, it is closed.
    pub(super) async fn leave(&mut self) {
        let Some(key) = self.queued else { return };
        let sql = format!(
            "SELECT pg_catalog.pg_advisory_unlock_all(); \
             UNLISTEN \"locktop_lease_{key}\"; RESET idle_session_timeout"
        );
        // The term runs already.
        if self.execute(&sql, self.term / 3).await.is_err() {
            self.close();
        }
        self.queued = None;
    }

    /// Waits for a notification. A connection that has ended is no longer in the queue.
    async fn wait_for_notification(&mut self, limit: Duration) {
        let Some(connection) = &mut self.connection else { return };
        if let Ok(None) = tokio::time::timeout(limit, connection.notifications.recv()).await {
            self.close();
        }
    }

    async fn execute(&mut self, sql: &str, limit: Duration) -> Result<(), Error> {
        let (what, schema) = ("pg_advisory_lock", &self.schema);
        let Some(connection) = &self.connection else { return Err(Error::no_row(what)) };
        match tokio::time::timeout(limit, connection.client.simple_query(sql)).await {
            Ok(answer) => answer.map(drop).map_err(|error| Error::of(what, schema, &error)),
            Err(_) => Err(Error::silent(what, limit)),
        }
    }
}

fn sqlstate(answer: &Result<(), Error>) -> Option<&str> {
    match answer {
        Err(error) => error.sqlstate(),
        Ok(()) => None,
    }
}

/// As a setting: at least 1, since 0 is no limit.
fn milliseconds(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX).max(1)
}
