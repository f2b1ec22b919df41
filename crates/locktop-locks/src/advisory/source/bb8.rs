//! Connections of a pool of `bb8-postgres`.

use std::time::Duration;

use bb8_postgres::PostgresConnectionManager;
use bb8_postgres::bb8::{ManageConnection, Pool, PooledConnection};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, NoTls, Socket};

use super::{CANCEL, Conn, Error, Refusal, Source, ask, closed, spawn};

/// How long [`END`] may take before the statement in progress is cancelled again.
const PATIENCE: Duration = Duration::from_millis(200);
/// Ends the session, which every role may do (PostgreSQL 14 and later).
const END: &str = "SELECT pg_catalog.pg_advisory_unlock_all(); SET idle_session_timeout = 1";

/// A pool with TLS, and its connector, which cancel requests need.
#[derive(Debug, Clone)]
pub struct WithTls<Tls: MakeTlsConnect<Socket>>(pub Pool<PostgresConnectionManager<Tls>>, pub Tls)
where
    PostgresConnectionManager<Tls>: ManageConnection;

/// A connection of such a pool.
pub struct Bb8Connection<Tls>
where
    Tls: MakeTlsConnect<Socket>,
    PostgresConnectionManager<Tls>: ManageConnection<Connection = Client>,
{
    client: Option<PooledConnection<'static, PostgresConnectionManager<Tls>>>,
    tls: Tls,
    /// It must not be reused.
    is_discarded: bool,
}

impl<Tls> Drop for Bb8Connection<Tls>
where
    Tls: MakeTlsConnect<Socket>,
    PostgresConnectionManager<Tls>: ManageConnection<Connection = Client>,
{
    /// The pool reuses every connection that is open. One that must not be reused, but is still open when the runtime ends, is
    /// leaked instead.
    fn drop(&mut self) {
        if let Some(client) = self.client.take_if(|client| self.is_discarded && !client.is_closed()) {
            std::mem::forget(client);
        }
    }
}

impl Source for Pool<PostgresConnectionManager<NoTls>> {
    type Conn = Bb8Connection<NoTls>;

    async fn get(&self) -> Result<Self::Conn, Error> {
        WithTls(self.clone(), NoTls).get().await
    }
}

impl<Tls> Source for WithTls<Tls>
where
    Tls: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    Tls::Stream: Send + Sync,
    Tls::TlsConnect: Send,
    <Tls::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
    PostgresConnectionManager<Tls>: ManageConnection<Connection = Client, Error = tokio_postgres::Error>,
{
    type Conn = Bb8Connection<Tls>;

    async fn get(&self) -> Result<Self::Conn, Error> {
        let client = self.0.get_owned().await.map_err(|error| Error::pool(&error))?;
        Ok(Bb8Connection { client: Some(client), tls: self.1.clone(), is_discarded: false })
    }
}

impl<Tls> Conn for Bb8Connection<Tls>
where
    Tls: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    Tls::Stream: Send + Sync,
    Tls::TlsConnect: Send,
    <Tls::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
    PostgresConnectionManager<Tls>: ManageConnection<Connection = Client, Error = tokio_postgres::Error>,
{
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        match &self.client {
            Some(client) => ask(client, sql).await,
            None => Err(Refusal::Lost("it was discarded".to_owned())),
        }
    }

    async fn ended(&mut self) -> String {
        match &self.client {
            Some(client) => closed(client).await,
            None => "it was discarded".to_owned(),
        }
    }

    /// Keeps the connection out of the pool until the server has ended the session.
    fn discard(mut self) {
        self.is_discarded = true;
        spawn(async move {
            let Some(client) = &self.client else { return };
            while !client.is_closed() {
                if tokio::time::timeout(PATIENCE, client.simple_query(END)).await.is_err() {
                    let token = client.cancel_token();
                    let _ = tokio::time::timeout(CANCEL, token.cancel_query(self.tls.clone())).await;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    }
}
