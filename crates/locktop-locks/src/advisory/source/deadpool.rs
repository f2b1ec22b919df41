//! Connections of a pool of `deadpool-postgres`.

use deadpool_postgres::{Object, Pool};

use super::{AdvisoryError, Conn, Refusal, Source, ask, cancel, closed, spawn};

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

    fn discard(self) {
        let cancelled = cancel(&self);
        // The task of the connection ends with this.
        drop(Self::take(self));
        spawn(cancelled);
    }
}
