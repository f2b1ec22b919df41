use std::pin::pin;

use futures_util::TryStreamExt;
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::model::Text;
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::trust::untrusted;
use pg_connect::message;

/// The server's answer about a query, or why the query is rejected.
pub(super) type Said<T> = Result<Result<T, Unread>, SectionError>;

/// The columns of the last statement of a message, and the values of all columns named `sizes` or `QUERY PLAN`.
pub(super) async fn asked(client: &Client, scope: Scope, sql: &str) -> Said<Rows> {
    match scope.alone(client, rows(client, sql)).await {
        Ok(rows) => Ok(Ok(rows)),
        Err(error) => match error.as_db_error() {
            Some(told) => {
                let position = match told.position() {
                    Some(ErrorPosition::Original(at)) => usize::try_from(*at).ok(),
                    _ => None,
                };
                Ok(Err(Unread {
                    reason: untrusted(told).unwrap_or_else(|| message(&error)).into(),
                    position,
                }))
            }
            None => Err(error.into()),
        },
    }
}

/// Why a query is rejected, and the position of the error in the message, in characters from 1.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) reason: Text,
    pub(super) position: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) columns: Vec<String>,
    pub(super) values: Vec<String>,
}

async fn rows(client: &Client, sql: &str) -> Result<Rows, tokio_postgres::Error> {
    let mut messages = pin!(client.simple_query_raw(sql).await?);
    let mut rows = Rows::default();
    let mut is_wanted = false;
    while let Some(message) = messages.try_next().await? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                rows.columns = columns.iter().map(|column| column.name().to_owned()).collect();
                is_wanted = matches!(rows.columns.first().map(String::as_str), Some("sizes" | "QUERY PLAN"));
            }
            SimpleQueryMessage::Row(row) if is_wanted => {
                rows.values.extend(row.try_get(0)?.map(str::to_owned));
            }
            _ => {}
        }
    }
    Ok(rows)
}
