//! Connections of a pool of `deadpool-postgres`.

use deadpool_postgres::{Object, Pool};
use tokio_postgres::NoTls;

use super::{CANCEL, Conn, Error, Refusal, Source, ask, closed, spawn};

impl Source for Pool {
    type Conn = Object;

    async fn get(&self) -> Result<Object, Error> {
        Self::get(self).await.map_err(|error| Error::pool(&error))
    }
}

impl Conn for Object {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        ask(self, sql).await
    }

    async fn ended(&mut self) -> String {
        closed(self).await
    }

    /// The TLS settings of the pool are not known here, so the cancel request is sent without TLS. A server that rejects it detects
    /// the closed connection by `client_connection_check_interval`.
    fn discard(self) {
        let token = self.cancel_token();
        // The task of the connection ends with this.
        drop(Self::take(self));
        spawn(async move {
            let _ = tokio::time::timeout(CANCEL, token.cancel_query(NoTls)).await;
        });
    }
}
