//! The relations that a statement names, as the catalogs have them. None of them is opened.

use std::time::Duration;

use postgres_protocol::escape::escape_literal;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::sql;
use crate::model::lock_of::{CatalogRelation, Elsewhere};
use crate::model::statement::Relation;
use pg_connect::message;

/// Longest wait for an answer; the server ends its statement before that.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why it is not known what the relations are.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The server refused, or the connection failed; in one line.
    #[error("{0}")]
    Server(String),
    /// No answer came within five seconds.
    #[error("the server did not say within 5 seconds which relations these are")]
    Time,
}

/// What is there of each; where the search path leads to nothing of that name, the schemas that have one. In one message, which is one transaction: through a pooler, too.
pub async fn places(
    client: &Client,
    relations: &[Relation],
) -> Result<Vec<Result<CatalogRelation, Elsewhere>>, LookError> {
    let mut found: Vec<Result<CatalogRelation, Elsewhere>> =
        relations.iter().map(|_| Err(Elsewhere::default())).collect();
    if relations.is_empty() {
        return Ok(found);
    }
    let text = |text: &str| format!("{}::pg_catalog.text", escape_literal(text));
    let asked = relations.iter().enumerate().map(|(number, relation)| {
        let schema = relation.schema.as_deref().map_or_else(|| "NULL::pg_catalog.text".to_owned(), text);
        format!("({number}, {schema}, {})", text(&relation.name))
    });
    let asked = asked.collect::<Vec<_>>().join(", ");
    let [query, elsewhere] = [sql::LOCK_OF, sql::LOCK_OF_ELSEWHERE].map(|sql| sql.replace("$asked", &asked));
    let script = format!(
        "BEGIN READ ONLY; SET LOCAL statement_timeout = '3s'; SET LOCAL lock_timeout = '1s'; {query}; {elsewhere}; COMMIT"
    );
    let answered = tokio::time::timeout(TIMEOUT, client.simple_query(&script)).await;
    let messages =
        answered.map_err(|_| LookError::Time)?.map_err(|error| LookError::Server(message(&error)))?;
    for row in messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    }) {
        let number: Option<usize> = value(row, 0).and_then(|text| text.parse().ok());
        let Some(one) = number.and_then(|number| found.get_mut(number)) else { continue };
        match (one, place(row)) {
            (one, Some(place)) => *one = Ok(place),
            (Err(elsewhere), None) if row.len() == 2 => {
                elsewhere.schemas.extend(value(row, 1).map(str::to_owned));
            }
            (_, None) => {}
        }
    }
    Ok(found)
}

fn value(row: &SimpleQueryRow, column: usize) -> Option<&str> {
    row.try_get(column).ok().flatten()
}

fn place(row: &SimpleQueryRow) -> Option<CatalogRelation> {
    let pages: u64 = value(row, 5)?.parse().unwrap_or_default();
    let below = value(row, 7)?.trim_matches(['{', '}']);
    Some(CatalogRelation {
        oid: value(row, 1)?.parse().ok()?,
        schema: value(row, 2)?.to_owned(),
        kind: value(row, 3)?.chars().next()?,
        // -1 where nobody has counted.
        rows: value(row, 4)?.parse().ok().filter(|rows: &f64| *rows >= 0.0),
        bytes: pages.saturating_mul(8192),
        table: value(row, 6).and_then(|oid| oid.parse().ok()),
        below: below.split(',').filter_map(|oid| oid.parse().ok()).collect(),
    })
}
