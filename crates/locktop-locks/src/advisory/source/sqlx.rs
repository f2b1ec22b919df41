//! Connections of a pool of `sqlx`.

use std::mem;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use sqlx::{Connection as _, Executor as _, PgConnection, PgPool, Postgres, Row as _};
use tokio::runtime::Handle;

use super::{CANCEL, Conn, Error, GOODBYE, PING, Refusal, Source};

/// How often the server is asked whether the session exists: sqlx reads from the connection only when it expects an answer.
const CHECK: Duration = Duration::from_millis(250);
/// Between two attempts to cancel.
const AGAIN: Duration = Duration::from_millis(50);
/// The process id and the start of the session, even if the pool sets a role that may not see them.
const SESSION: &str = "SET LOCAL ROLE none; SELECT pg_catalog.concat(pid, ' ', extract(epoch FROM backend_start)) \
     FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())";

/// A connection of such a pool.
///
/// The end of its session is detected within 250 ms by a `Sync` message, for which the server runs no statement; a server that
/// does not answer, within 10 s. sqlx sends no cancel requests: a wait that is given up is cancelled by `pg_cancel_backend` on a
/// connection outside the pool, which has the options of the pool, or else within 1 s by `client_connection_check_interval`.
#[derive(Debug)]
pub struct Pooled {
    conn: Option<PoolConnection<Postgres>>,
    /// The answer to [`SESSION`].
    session: String,
    pool: PgPool,
    /// A statement is in progress.
    is_busy: bool,
    /// The connection is returned and closed by tasks, and sqlx panics without a runtime.
    runtime: Handle,
}

impl Source for PgPool {
    type Conn = Pooled;

    async fn get(&self) -> Result<Pooled, Error> {
        let conn = self.acquire().await.map_err(|error| pool(&error))?;
        let (pool, runtime) = (self.clone(), Handle::current());
        let mut pooled = Pooled { conn: Some(conn), session: String::new(), pool, is_busy: false, runtime };
        match super::within(Some(PING), SESSION, pooled.ask(SESSION)).await {
            Ok(session) => pooled.session = session.unwrap_or_default(),
            Err(error) => {
                pooled.discard();
                return Err(error);
            }
        }
        Ok(pooled)
    }
}

impl Conn for Pooled {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        let Some(conn) = &mut self.conn else { return Err(Refusal::Lost("it was discarded".to_owned())) };
        self.is_busy = true;
        let answer = ask(conn, sql).await;
        self.is_busy = false;
        answer
    }

    async fn ended(&mut self) -> String {
        loop {
            tokio::time::sleep(CHECK).await;
            let Some(conn) = &mut self.conn else { return "it was discarded".to_owned() };
            match tokio::time::timeout(PING, conn.ping()).await {
                Ok(Ok(())) => {}
                Ok(Err(sqlx::Error::Database(error))) => return error.message().to_owned(),
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return format!("the server has not answered for {} s", PING.as_secs()),
            }
        }
    }

    fn discard(mut self) {
        let Some(conn) = self.conn.take() else { return };
        let _runtime = self.runtime.enter();
        let conn = conn.detach();
        if self.is_busy {
            drop(conn);
            let (pool, session) = (self.pool.clone(), mem::take(&mut self.session));
            self.runtime.spawn(async move { tokio::time::timeout(CANCEL, cancel(pool, session)).await });
        } else {
            self.runtime.spawn(async move { tokio::time::timeout(GOODBYE, conn.close()).await });
        }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let _runtime = self.runtime.enter();
        drop(self.conn.take());
    }
}

/// Cancels the wait for an advisory lock of a session whose client has disconnected, until the session has ended. Its process
/// id alone may belong to a later session.
async fn cancel(pool: PgPool, session: String) -> Result<(), sqlx::Error> {
    let Some((pid, start)) = session.split_once(' ').filter(|(_, start)| !start.is_empty()) else {
        return Ok(());
    };
    let sql = format!(
        "SET LOCAL ROLE none; SELECT pg_catalog.concat(CASE WHEN a.wait_event OPERATOR(pg_catalog.=) 'advisory' \
         THEN pg_catalog.pg_cancel_backend(a.pid) END) FROM pg_catalog.pg_stat_get_activity({pid}) a \
         WHERE extract(epoch FROM a.backend_start) OPERATOR(pg_catalog.=) {start}"
    );
    let mut conn = PgConnection::connect_with(&pool.connect_options()).await?;
    while matches!(ask(&mut conn, &sql).await, Ok(Some(_))) {
        tokio::time::sleep(AGAIN).await;
    }
    conn.close().await
}

async fn ask(conn: &mut PgConnection, sql: &str) -> Result<Option<String>, Refusal> {
    let rows = conn.fetch_all(sqlx::raw_sql(sql)).await.map_err(|error| refusal(&error))?;
    let Some(row) = rows.last() else { return Ok(None) };
    let value = row.try_get_raw(0).map_err(|error| Refusal::Lost(error.to_string()))?;
    Ok(value.as_str().ok().map(str::to_owned))
}

/// The error of a pool that gives no connection.
fn pool(error: &sqlx::Error) -> Error {
    match error.as_database_error().and_then(|error| Some((error.code()?, error.message()))) {
        Some((code, message)) => Error::refused(Error::POOL, Refusal::server(&code, message)),
        None => Error::Pool(error.to_string()),
    }
}

/// An error of severity FATAL ends the session.
fn refusal(error: &sqlx::Error) -> Refusal {
    let server = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    match server {
        Some(error) if !matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic) => {
            Refusal::server(error.code(), error.message())
        }
        Some(error) => Refusal::Lost(error.message().to_owned()),
        None => Refusal::Lost(error.to_string()),
    }
}
