//! How a table is read: by a statement if its owner is trusted, else by a copy of the table.

use std::pin::pin;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::copied::Copying;
use super::found::{Named, guarded};
use super::{Columns, Refusal, Table};
use crate::model::Text;
use crate::pg::decode::copy::RowBuffer;
use crate::pg::scope::Scope;
use crate::pg::scope::SectionError;
use crate::pg::trust::{remedy, untrusted};

#[derive(Debug, Clone)]
pub(in crate::pg) enum Reading {
    /// A whole transaction in one message.
    Statement(String, Scope),
    /// A copy of a table of an untrusted owner.
    Copy(Copying),
}

impl Reading {
    /// A copy of these columns of a table, with this many trailing columns that are always NULL; or why the table is not
    /// read.
    pub(in crate::pg) async fn copy(
        client: &Client,
        scope: Scope,
        table: &Table,
        (columns, extra): (Columns, usize),
    ) -> Result<Result<Self, Text>, SectionError> {
        // A copy is prepared once, which a shared session does not keep.
        if scope == Scope::Open {
            let owner = table.stranger.as_deref().unwrap_or_default();
            let (name, remedy) = (table.label(), remedy(owner));
            return Ok(Err(format!(
                "{name} is not read through a pooler in transaction mode: {owner} is not trusted; {remedy}"
            )
            .into()));
        }
        Ok(Copying::prepare(client, table, columns, extra).await?.map(Self::Copy))
    }

    /// A query of trusted tables. Each is locked in the mode that reading takes, then checked again, and only then is the
    /// query planned: all in one message, which is one transaction, so that no table can be replaced in between.
    /// (PostgreSQL's documentation, "Multiple Statements in a Simple Query".)
    pub(in crate::pg) fn query(tables: &[&Table], query: &str, scope: Scope) -> Self {
        let tables: Vec<Named<'_>> = tables.iter().map(|table| table.named()).collect();
        let sql = format!("SET TRANSACTION READ ONLY;{}\n{}", guarded(&tables), records(query));
        Self::Statement(sql, scope)
    }

    /// Returns messages of a binary COPY, unless the table was locked at the last poll.
    pub(in crate::pg) async fn read(&self, client: &Client, locked: bool) -> Result<Vec<Bytes>, Refusal> {
        match self {
            _ if locked => Err(Refusal::Locked),
            Self::Statement(sql, scope) => scope.alone(client, queried(client, sql)).await,
            Self::Copy(copying) => copying.read(client).await,
        }
    }

    /// Whether it reads all rows of the table.
    pub(in crate::pg) fn is_copy(&self) -> bool {
        matches!(self, Self::Copy(_))
    }
}

/// Rows as records in hexadecimal digits, in a column `found`.
pub(in crate::pg) fn records(query: &str) -> String {
    format!("SELECT pg_catalog.encode(pg_catalog.record_send(q), 'hex') AS found FROM (\n{query}\n) AS q")
}

async fn queried(client: &Client, sql: &str) -> Result<Vec<Bytes>, Refusal> {
    let refused = |error: tokio_postgres::Error| {
        let guarded = error.as_db_error().and_then(untrusted);
        guarded.map_or_else(|| Refusal::Section(error.into()), |reason| Refusal::Guarded(reason.into()))
    };
    let mut messages = pin!(client.simple_query_raw(sql).await.map_err(refused)?);
    let mut rows = RowBuffer::new();
    let mut is_found = false;
    while let Some(message) = messages.try_next().await.map_err(refused)? {
        match message {
            // The guards answer first, with a column of another name.
            SimpleQueryMessage::RowDescription(columns) => {
                is_found = columns.iter().any(|column| column.name() == "found");
            }
            SimpleQueryMessage::Row(row) if is_found => {
                let row = row.try_get(0).map_err(refused)?.unwrap_or_default();
                rows.record(row).map_err(|error| Refusal::Section(error.into()))?;
            }
            _ => {}
        }
    }
    Ok(rows.finish())
}
