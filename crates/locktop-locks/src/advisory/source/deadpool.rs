//! Connections of a pool of `deadpool-postgres`.

use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use tokio_postgres::NoTls;

use super::{AdvisoryError, Conn, Refusal, Source, ask, closed, spawn};

/// Longest attempt to cancel a request for a lock.
const CANCEL: Duration = Duration::from_secs(5);

impl Source for Pool {
    type Conn = Object;

    async fn get(&self) -> Result<Object, AdvisoryError> {
        Self::get(self).await.map_err(|error| AdvisoryError::Pool(error.to_string()))
    }
}

impl Conn for Object {
    async fn ask(&mut self, sql: &str) -> Result<Option<String>, Refusal> {
        ask(self, sql).await
    }

    async fn ended(&mut self) -> String {
        closed(self).await
    }

    /// The pool's TLS is not known here, so the cancel request is sent without. A server that demands TLS even for that notices
    /// by `client_connection_check_interval` that its client has left.
    fn discard(self) {
        let token = self.cancel_token();
        // The task of the connection ends with this.
        drop(Self::take(self));
        spawn(async move {
            let _ = tokio::time::timeout(CANCEL, token.cancel_query(NoTls)).await;
        });
    }
}
