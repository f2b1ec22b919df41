//! Reading names of advisory keys: queries of the user, and of tables of well-known software.
//!
//! The connection is one that others use too. A query therefore goes out in one message of the simple protocol
//! ("Multiple Statements in a Simple Query" in the documentation): that is a transaction of its own, read-only, which
//! nothing can come between and which is over with the message, whether the query fails or not. A cursor in it hands
//! out no more rows than are wanted, so that a query without end costs no more than its first rows do, and the server
//! cuts what is long before it sends it.

mod rows;
mod software;

use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::poll::{Limits, message};
use super::sql;
use crate::model::Text;
use crate::model::lock_key::LockKey;

use rows::Shape;
pub use software::{Place, Software};

/// Rows of one query that are read; what follows is not.
pub const ROWS: usize = 10_000;
/// Longest time for one query, a little more than the server itself allows it (`frame.sql`).
const PATIENCE: Duration = Duration::from_millis(1500);

/// Before queries of ours: nothing that somebody put into a schema, an operator say, is meant by them, and a table
/// whose rows are filtered by a policy, which is code, is an error. ("Writing SECURITY DEFINER Functions Safely" in
/// the documentation of CREATE FUNCTION, and `row_security`.)
const TRUSTED: &str = "SET LOCAL search_path TO pg_catalog, pg_temp;\nSET LOCAL row_security TO off;";

/// A query without an answer, or with one that is of no use.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// The server refused.
    #[error("{}", message(.0))]
    Server(#[from] tokio_postgres::Error),
    /// Columns of other numbers or types than wanted.
    #[error("expected (key bigint, name text) or (classid int, objid int, name text), got {0}")]
    Columns(String),
    /// A key that is none.
    #[error("row {row}: \"{value}\" is no {wanted}")]
    Key {
        /// Number of the row, from 1.
        row: usize,
        /// What was in it.
        value: String,
        /// What was wanted.
        wanted: &'static str,
    },
    /// No answer.
    #[error("no answer within {} s", PATIENCE.as_secs_f64())]
    Silent,
}

/// What a query brought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// Keys and their names, without NULLs and without empty names.
    pub names: Vec<(LockKey, Text)>,
    /// Whether there were more rows than [`ROWS`].
    pub cut: bool,
}

/// Runs a query of the user.
///
/// # Errors
/// When the server refuses it, it takes too long, or its rows are not keys and names.
pub async fn ask(client: &Client, limits: &Limits, query: &str) -> Result<Answer, LearnError> {
    // The server takes one statement here and no more, and says what its columns are.
    let prepared = tokio::time::timeout(PATIENCE, client.prepare(query)).await;
    let prepared = prepared.map_err(|_| LearnError::Silent)??;
    let types: Vec<_> =
        prepared.columns().iter().map(|column| (column.name(), column.type_().clone())).collect();
    let shape = Shape::of(&types)?;
    rows::answer(shape, fetch(client, &framed(shape.columns(), "", query, limits)).await?)
}

/// Reads a table of well-known software.
///
/// # Errors
/// When it cannot be read.
pub async fn ask_software(client: &Client, limits: &Limits, place: &Place) -> Result<Answer, LearnError> {
    let query =
        place.software.query().replace("FROM ONLY ", &format!("FROM ONLY {}.", quoted(&place.schema)));
    let text = framed(Shape::Bigint.columns(), TRUSTED, &query, limits);
    rows::answer(Shape::Bigint, fetch(client, &text).await?)
}

/// The name of the database, and the tables of well-known software in it.
///
/// # Errors
/// When the catalogs cannot be read.
pub async fn look_around(client: &Client, limits: &Limits) -> Result<(Text, Vec<Place>), LearnError> {
    let rows = fetch(client, &framed(&["software", "schema"], TRUSTED, sql::LEARN_TABLES, limits)).await?;
    let mut database = Text::default();
    let mut places = vec![Place { software: Software::PgPartman, schema: "pg_catalog".into() }];
    for mut row in rows {
        let (Some(name), Some(Some(kind))) = (row.pop().flatten(), row.pop()) else { continue };
        let name = rows::from_hex(&name);
        match Software::of(&kind) {
            Some(software) => places.push(Place { software, schema: name.into() }),
            None => database = name.into(),
        }
    }
    Ok((database, places))
}

/// A row as the simple protocol has it: texts and NULLs.
type Row = Vec<Option<String>>;

/// The rows of a framed query: those of the first statement that has any.
async fn fetch(client: &Client, text: &str) -> Result<Vec<Row>, LearnError> {
    let read = async {
        let mut messages = pin!(client.simple_query_raw(text).await?);
        let mut rows = Vec::new();
        let (mut begun, mut done) = (false, false);
        // To the end, even so: only then is it certain that none of the statements failed.
        while let Some(message) = messages.try_next().await? {
            match message {
                SimpleQueryMessage::Row(row) if !done => {
                    let value = |column| row.try_get(column).ok().flatten().map(str::to_owned);
                    rows.push((0..row.len()).map(value).collect());
                }
                SimpleQueryMessage::RowDescription(_) => begun = true,
                SimpleQueryMessage::CommandComplete(_) => done = begun,
                _ => {}
            }
        }
        Ok(rows)
    };
    tokio::time::timeout(PATIENCE, read).await.map_err(|_| LearnError::Silent)?
}

/// A query in the message that is sent. Its last column is the name.
fn framed(columns: &[&str], before: &str, query: &str, limits: &Limits) -> String {
    let frame: String = uncommented(sql::LEARN_FRAME);
    let number = columns.len();
    let selected = columns.iter().enumerate().map(|(place, column)| {
        if place + 1 == number {
            format!(
                "pg_catalog.encode(pg_catalog.textsend(pg_catalog.left({column}::pg_catalog.text, {})), 'hex')",
                rows::NAME
            )
        } else {
            format!("pg_catalog.left({column}::pg_catalog.text, {})", rows::KEY)
        }
    });
    let frame = frame
        .replace("$columns", &selected.collect::<Vec<_>>().join(", "))
        .replace("$names", &columns.join(", "))
        .replace("$settings", &sql::all_settings(limits.statement_timeout, limits.lock_timeout));
    // Last, and not one into the other: what is in them is not ours.
    let query = query.trim_end_matches(|end: char| end == ';' || end.is_whitespace());
    frame.split_once("$query").map_or_else(String::new, |(head, tail)| {
        format!("{}{query}{tail}", head.replacen("$before", before, 1))
    })
}

fn uncommented(sql: &str) -> String {
    sql.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests;
