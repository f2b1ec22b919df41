//! The calls, over a connection that is replaced when it is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};
use tokio_postgres::{Client, Row};

use super::{LeaseId, Request};
use crate::Error;
use crate::advisory::source::{CANCEL, GOODBYE, spawn};
use crate::call::{Parameter, literal};
use locktop_base::clock;
use pg_connect::connect::{Listening, listen};
use pg_connect::conninfo::ConnInfo;

/// Longest wait for the answer of the statement that wakes a waiter.
const WAKING: Duration = Duration::from_secs(1);

/// The result of a request for a lease.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The token, and when it was requested, by [`clock::since_boot`].
    pub(super) granted: Option<(i64, Duration)>,
    /// The rest of the holder's term; `None` if there is no holder.
    pub(super) left: Option<Duration>,
    /// The key of the queue.
    pub(super) key: i64,
}

/// A way to the server. It leaves no state there, except in the queue, so any pooler may be in between.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) info: ConnInfo,
    pub(super) connection: Option<Listening>,
    /// Where the connection goes after a release.
    pub(super) kept: Weak<Kept>,
    /// The key of the queue that the session is in, or may be: with settings, and perhaps a lock and a statement in progress.
    pub(super) queued: Option<i64>,
    /// The name of the schema, in double quotes.
    pub(super) schema: String,
    /// The key of the queue, in SQL: its name is a literal, so that locktop shows it.
    pub(super) key: String,
    pub(super) lease: LeaseId,
    /// `distlock.id`; 0 as long as that of the name is not known.
    pub(super) row: i32,
    pub(super) term: Duration,
}

impl Link {
    pub(super) fn new(info: &ConnInfo, request: &Request) -> Self {
        let (schema, lease) = (request.schema.quoted(), request.id.clone());
        let (row, shown) = match &lease {
            LeaseId::Number(id) => (*id, id.to_string()),
            LeaseId::Name(name) => (0, format!("'{}'", name.replace('\'', "''"))),
        };
        let name = literal(&format!("locktop lease {schema} {shown}"));
        let key = format!("pg_catalog.hashtextextended({name}, 0)");
        Self {
            info: info.clone(),
            connection: None,
            kept: Weak::new(),
            queued: None,
            schema,
            key,
            lease,
            row,
            term: request.term,
        }
    }

    /// Connects if there is no connection. A new one is not in the queue.
    pub(super) async fn client(&mut self) -> Result<&Client, Error> {
        let connection = match self.connection.take() {
            Some(connection) if !connection.client.is_closed() => connection,
            _ => {
                self.queued = None;
                listen(&self.info).await?
            }
        };
        Ok(&self.connection.insert(connection).client)
    }

    /// Closes the connection, whatever is in progress on it.
    pub(super) fn close(&mut self) {
        let queued = self.queued.take();
        let Some(connection) = self.connection.take() else { return };
        // A backend that waits for a lock does not notice that its client has disconnected; and a pooler passes a request to
        // cancel on only for a client that is connected.
        if queued.is_some() {
            spawn(async move {
                connection.canceller.cancel(CANCEL).await;
                drop(connection);
            });
        }
    }

    /// Leaves the connection to the next request, if there can be one.
    pub(super) fn keep(&mut self) {
        if let (None, Some(kept)) = (self.queued, self.kept.upgrade())
            && let Some(connection) = self.connection.take()
        {
            kept.put(connection);
        }
    }

    /// Asks for the lease; if `in_turn`, only when no session is the first in its queue.
    pub(super) async fn acquire(&mut self, owner: &str, in_turn: bool) -> Result<Attempt, Error> {
        self.client().await?;
        let limit = self.term;
        tokio::time::timeout(limit, self.try_acquire(owner, in_turn)).await.unwrap_or_else(|_| {
            self.close();
            Err(Error::silent("lease_acquire", limit))
        })
    }

    async fn try_acquire(&mut self, owner: &str, in_turn: bool) -> Result<Attempt, Error> {
        let sent = clock::since_boot();
        let (what, schema) = ("lease_acquire", self.schema.clone());
        let (lease, key, secs) = (self.lease.clone(), self.key.clone(), self.term.as_secs_f64());
        let (id, kind, acquire, column, row): (&(dyn ToSql + Sync), _, _, _, _) = match &lease {
            LeaseId::Number(id) => (id, Type::INT4, "lease_acquire", "id", "$1".to_owned()),
            // Called last: a row that is acquired keeps its name.
            LeaseId::Name(name) => {
                (name, Type::TEXT, "lease_acquire_named", "name", format!("{schema}.lease_id($1)"))
            }
        };
        // The difference to infinity is an error before 17.
        let sql = format!(
            "SELECT CASE WHEN NOT $4 OR pg_catalog.pg_try_advisory_xact_lock_shared(k.key)
                         THEN {schema}.{acquire}($1, $2, pg_catalog.make_interval(secs => $3)) END,
                    (SELECT pg_catalog.date_part('epoch', d.ts OPERATOR(pg_catalog.+) d.expired_time
                                                          OPERATOR(pg_catalog.-) pg_catalog.clock_timestamp())
                       FROM {schema}.distlock d
                      WHERE d.{column} OPERATOR(pg_catalog.=) $1 AND pg_catalog.isfinite(d.ts)),
                    k.key, {row}
               FROM {key} k (key)"
        );
        let values: &[Parameter<'_>] =
            &[(id, kind), (&owner, Type::TEXT), (&secs, Type::FLOAT8), (&in_turn, Type::BOOL)];
        let row = first(self.client().await?, what, &schema, &sql, values).await?;
        let failed = |error| Error::column(what, &error);
        let row = row.ok_or_else(|| Error::no_row(what))?;
        self.row = row.try_get(3).map_err(failed)?;
        let token: Option<i64> = row.try_get(0).map_err(failed)?;
        let left: Option<f64> = row.try_get(1).map_err(failed)?;
        let left = left.map(|seconds| {
            let endless = if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
            Duration::try_from_secs_f64(seconds).unwrap_or(endless)
        });
        Ok(Attempt { granted: token.map(|token| (token, sent)), left, key: row.try_get(2).map_err(failed)? })
    }

    /// Whether it was renewed; `None` if the row is locked.
    pub(super) async fn renew(&mut self, token: i64) -> Result<Option<bool>, Error> {
        let (id, secs, schema) = (self.row, self.term.as_secs_f64(), self.schema.clone());
        let values: &[Parameter<'_>] = &[(&id, Type::INT4), (&token, Type::INT8), (&secs, Type::FLOAT8)];
        let sql = format!("SELECT {schema}.lease_renew($1, $2, pg_catalog.make_interval(secs => $3))");
        value(self.client().await?, "lease_renew", &schema, &sql, values).await
    }

    /// Whether it was held until now; `None` if the row is locked. Then wakes the first of the queue, if there is one. The
    /// two statements are sent together, but are two transactions: the second one, if it notifies, takes a lock of the whole
    /// server to its end.
    pub(super) async fn release(&mut self, token: i64) -> Result<Option<bool>, Error> {
        let (id, schema) = (self.row, self.schema.clone());
        let wake = format!(
            "SELECT pg_catalog.pg_notify(pg_catalog.concat('locktop_lease_', k.key), '')
               FROM {} k (key) WHERE NOT pg_catalog.pg_try_advisory_xact_lock_shared(k.key)",
            self.key
        );
        let client = self.client().await?;
        let values: &[Parameter<'_>] = &[(&id, Type::INT4), (&token, Type::INT8)];
        let sql = format!("SELECT {schema}.lease_release($1, $2)");
        let releasing = value(client, "lease_release", &schema, &sql, values);
        let waking = tokio::time::timeout(WAKING, client.query_typed(&wake, &[]));
        // A waiter that was not woken tries again by a timer.
        let (released, waking) = tokio::join!(biased; releasing, waking);
        if let (Ok(Some(_)), Ok(Ok(_))) = (&released, waking) {
            self.keep();
        }
        released
    }
}

impl Drop for Link {
    /// Ends the session with a Terminate message: without it, a server with TLS logs an error.
    fn drop(&mut self) {
        if self.queued.is_some() {
            self.close();
        } else if let Some(connection) = self.connection.take() {
            spawn(connection.close(GOODBYE));
        }
    }
}

pub(super) async fn first(
    client: &Client,
    what: &'static str,
    schema: &str,
    sql: &str,
    values: &[Parameter<'_>],
) -> Result<Option<Row>, Error> {
    let rows = client.query_typed(sql, values).await;
    Ok(rows.map_err(|error| Error::of(what, schema, &error))?.into_iter().next())
}

async fn value<T: FromSqlOwned>(
    client: &Client,
    what: &'static str,
    schema: &str,
    sql: &str,
    values: &[Parameter<'_>],
) -> Result<Option<T>, Error> {
    let row = first(client, what, schema, sql, values).await?;
    row.map_or(Ok(None), |row| row.try_get(0).map_err(|error| Error::column(what, &error)))
}

/// For how long a connection is kept.
const KEPT: Duration = Duration::from_secs(5);
/// Longest wait for the answer of a connection that was kept.
const ANSWER: Duration = Duration::from_secs(1);

/// The connection of a released lease.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Option<Idle>>);

#[derive(Debug)]
struct Idle {
    connection: Listening,
    /// By [`clock::since_boot`].
    since: Duration,
    /// Closes the connection.
    timer: AbortHandle,
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Option<Idle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, if it still answers.
    pub(super) async fn take(&self) -> Option<Listening> {
        let idle = self.lock().take()?;
        let is_old = clock::since_boot().saturating_sub(idle.since) >= KEPT;
        let connection = idle.stopped();
        // The timer does not count the time of a suspended process.
        let answer =
            if is_old { None } else { timeout(ANSWER, connection.client.check_connection()).await.ok() };
        if matches!(answer, Some(Ok(()))) {
            return Some(connection);
        }
        tokio::spawn(connection.close(GOODBYE));
        None
    }

    /// Keeps a connection that is in no queue; closes it if no request takes it in time.
    pub(super) fn put(self: &Arc<Self>, mut connection: Listening) {
        // Not for the next lease.
        while connection.notifications.try_recv().is_some() {}
        let (kept, since) = (Arc::downgrade(self), clock::since_boot());
        let timer = tokio::spawn(async move {
            sleep(KEPT).await;
            let Some(kept) = kept.upgrade() else { return };
            let over = kept.lock().take_if(|idle| idle.since == since);
            if let Some(idle) = over {
                idle.connection.close(GOODBYE).await;
            }
        });
        let timer = timer.abort_handle();
        let other = self.lock().replace(Idle { connection, since, timer });
        if let Some(other) = other {
            tokio::spawn(other.stopped().close(GOODBYE));
        }
    }
}

impl Idle {
    fn stopped(self) -> Listening {
        self.timer.abort();
        self.connection
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(idle) = self.lock().take() {
            spawn(idle.stopped().close(GOODBYE));
        }
    }
}
