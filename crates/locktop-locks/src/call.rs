//! Calls of the functions that `locktop schema install` creates.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Row};

use crate::{Error, SchemaName};

/// A parameter and its type: nothing is prepared, so the calls work through any pooler.
pub type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The rows of a statement in which `@schema@` is the schema, as in `SELECT columns FROM schema.call`, where `what` is the name in `call`.
///
/// # Errors
/// If the server refuses, or the connection fails.
pub async fn rows<C: GenericClient + Sync>(
    client: &C,
    schema: &SchemaName,
    what: &'static str,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<Row>, Error> {
    let schema = schema.quoted();
    let sql = sql.replace("@schema@", &schema);
    client.query_typed(&sql, parameters).await.map_err(|error| Error::of(what, &schema, &error))
}

/// The same for exactly one row.
///
/// # Errors
/// As for [`rows`]; or if there is no row.
pub async fn row<C: GenericClient + Sync>(
    client: &C,
    schema: &SchemaName,
    what: &'static str,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<Row, Error> {
    let rows = rows(client, schema, what, sql, parameters).await?;
    rows.into_iter().next().ok_or_else(|| Error::no_row(what))
}

/// A column of a row of `what`.
///
/// # Errors
/// If it has another type.
pub fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    what: &'static str,
    row: &'a Row,
    index: usize,
) -> Result<T, Error> {
    row.try_get(index).map_err(|error| Error::column(what, &error))
}
