//! Connections of a pool of `bb8-postgres`.

use std::time::Duration;

use bb8_postgres::PostgresConnectionManager;
use bb8_postgres::bb8::{ManageConnection, Pool, PooledConnection};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Error, Socket};

use super::{AdvisoryError, Conn, Refusal, Source, ask, cancel, closed};

impl<Tls> Source for Pool<PostgresConnectionManager<Tls>>
where
    Tls: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    PostgresConnectionManager<Tls>: ManageConnection<Connection = Client, Error = Error>,
{
    type Conn = PooledConnection<'static, PostgresConnectionManager<Tls>>;

    async fn get(&self) -> Result<Self::Conn, AdvisoryError> {
        self.get_owned().await.map_err(|error| AdvisoryError::Pool(error.to_string()))
    }
}

impl<Tls> Conn for PooledConnection<'static, PostgresConnectionManager<Tls>>
where
    Tls: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    PostgresConnectionManager<Tls>: ManageConnection<Connection = Client, Error = Error>,
{
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        ask(self, sql).await
    }

    async fn ended(&mut self) -> String {
        closed(self).await
    }

    /// This pool takes every connection back that is open: so it is kept until the server has ended its session.
    fn discard(self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return std::mem::forget(self);
        };
        runtime.spawn(async move {
            cancel(&self).await;
            while !self.is_closed() {
                let end = "SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())";
                let _ = tokio::time::timeout(Duration::from_secs(10), self.simple_query(end)).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
}
