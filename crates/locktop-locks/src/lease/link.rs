//! The calls, over a connection that is replaced when it is lost.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};

use super::Request;
use super::error::LeaseError;
use pg_connect::connect::{Connection, connect};
use pg_connect::conninfo::ConnInfo;

/// A way to the server. It leaves no state there, so any pooler may be in between.
#[derive(Debug)]
pub(super) struct Link {
    info: ConnInfo,
    connection: Option<Connection>,
    /// The name of the schema, in double quotes.
    schema: String,
    pub(super) id: i32,
    pub(super) term: Duration,
}

impl Link {
    pub(super) fn new(info: &ConnInfo, request: &Request) -> Self {
        Self {
            info: info.clone(),
            connection: None,
            schema: request.schema.quoted(),
            id: request.id,
            term: request.term,
        }
    }

    /// Connects if there is no connection.
    pub(super) async fn client(&mut self) -> Result<&Client, LeaseError> {
        let connection = match self.connection.take() {
            Some(connection) if !connection.client.is_closed() => connection,
            _ => connect(&self.info).await?,
        };
        Ok(&self.connection.insert(connection).client)
    }

    /// Closes the connection, whatever is in progress on it.
    pub(super) fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.driver.abort();
        }
    }

    /// The token; `None` if another owner has the lease.
    pub(super) async fn acquire(&mut self, owner: &str) -> Result<Option<i64>, LeaseError> {
        let (id, secs) = (self.id, self.term.as_secs_f64());
        self.call(
            "lease_acquire",
            "$1, $2, pg_catalog.make_interval(secs => $3)",
            &[(&id, Type::INT4), (&owner, Type::TEXT), (&secs, Type::FLOAT8)],
        )
        .await
    }

    /// Whether it was renewed; `None` if the row is locked.
    pub(super) async fn renew(&mut self, token: i64) -> Result<Option<bool>, LeaseError> {
        let (id, secs) = (self.id, self.term.as_secs_f64());
        self.call(
            "lease_renew",
            "$1, $2, pg_catalog.make_interval(secs => $3)",
            &[(&id, Type::INT4), (&token, Type::INT8), (&secs, Type::FLOAT8)],
        )
        .await
    }

    /// Whether it was held until now; `None` if the row is locked.
    pub(super) async fn release(&mut self, token: i64) -> Result<Option<bool>, LeaseError> {
        let id = self.id;
        self.call("lease_release", "$1, $2", &[(&id, Type::INT4), (&token, Type::INT8)]).await
    }

    async fn call<T: FromSqlOwned>(
        &mut self,
        function: &'static str,
        arguments: &str,
        values: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Option<T>, LeaseError> {
        let schema = self.schema.clone();
        let failed = |error: tokio_postgres::Error| LeaseError::of(function, &schema, &error);
        let sql = format!("SELECT {schema}.{function}({arguments})");
        let rows = self.client().await?.query_typed(&sql, values).await.map_err(failed)?;
        rows.first().map_or(Ok(None), |row| row.try_get(0).map_err(failed))
    }
}
