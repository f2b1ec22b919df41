//! The relations and objects that a statement names, from the catalogs. None of them is opened.

use std::time::Duration;

use postgres_protocol::escape::escape_literal;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::sql;
use crate::model::lock_of::{CatalogRelation, Other, Resolution};
use crate::model::statement::{KINDS, Object, Relation, Role, StatementTarget};
use pg_connect::message;

/// Longest wait for an answer; the server ends its statement before that.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum LockOfError {
    /// The server refused, or the connection failed; one line.
    #[error("{0}")]
    Server(String),
    #[error("the server did not answer within 5 s which relations these are")]
    Time,
}

/// The object of each name or, if the search path has none, the schemas that have one. One message, so one transaction:
/// this works through a pooler, too.
///
/// # Errors
/// If the server refuses or does not answer.
pub async fn places(client: &Client, targets: &[StatementTarget]) -> Result<Vec<Resolution>, LockOfError> {
    let mut found: Vec<Resolution> = targets.iter().map(unasked).collect();
    let queries = queries(targets);
    if queries.is_empty() {
        return Ok(found);
    }
    let script = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; {settings} SET LOCAL statement_timeout = '3s'; \
         SET LOCAL lock_timeout = '1s'; {}; COMMIT",
        queries.join(
            ";
"
        ),
        settings = pg_connect::connect::settings_on_own_path(),
    );
    let answered = tokio::time::timeout(TIMEOUT, client.simple_query(&script)).await;
    let messages =
        answered.map_err(|_| LockOfError::Time)?.map_err(|error| LockOfError::Server(message(&error)))?;
    for row in messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    }) {
        let number: Option<usize> = value(row, 0).and_then(|text| text.parse().ok());
        if let Some(one) = number.and_then(|number| found.get_mut(number)) {
            read(one, row);
        }
    }
    Ok(found)
}

/// The state before the server is asked.
fn unasked(target: &StatementTarget) -> Resolution {
    match target {
        StatementTarget::Relation(_) => Resolution::Missing(Vec::new()),
        StatementTarget::Object(object) => match (object.kind.columns, object.name.parse()) {
            // A large object is identified by its OID.
            (["", ..], Ok(oid)) => Resolution::Object(vec![oid], Vec::new()),
            (["", ..], Err(_)) => Resolution::NotSearched,
            _ => Resolution::Missing(Vec::new()),
        },
        StatementTarget::Advisory(call) if call.key.is_none() => Resolution::NotSearched,
        StatementTarget::Advisory(_) | StatementTarget::Notifications => Resolution::Lock,
    }
}

fn queries(targets: &[StatementTarget]) -> Vec<String> {
    let text = |text: &str| format!("{}::pg_catalog.text", escape_literal(text));
    let row = |number: usize, schema: Option<&str>, name: &str| {
        let schema = schema.map_or_else(|| "NULL::pg_catalog.text".to_owned(), text);
        format!("({number}, {schema}, {})", text(name))
    };
    let numbered = || targets.iter().enumerate();
    let relations: Vec<String> = numbered()
        .filter_map(|(number, target)| match target {
            StatementTarget::Relation(Relation { schema, name, .. }) => {
                Some(row(number, schema.as_deref(), name))
            }
            _ => None,
        })
        .collect();
    let mut queries = Vec::new();
    if !relations.is_empty() {
        let fill = |query: &str| {
            query.replace("$found", sql::LOCK_OF_FOUND).replace("$asked", &relations.join(", "))
        };
        queries.extend([sql::LOCK_OF, sql::LOCK_OF_OTHERS, sql::LOCK_OF_ELSEWHERE].map(fill));
    }
    for kind in KINDS.iter().filter(|kind| !kind.columns[0].is_empty()) {
        let asked: Vec<String> = numbered()
            .filter_map(|(number, target)| match target {
                StatementTarget::Object(Object { kind: own, schema, name }) if *own == kind => {
                    Some(row(number, schema.as_deref(), name))
                }
                _ => None,
            })
            .collect();
        if asked.is_empty() {
            continue;
        }
        let [catalog, name, schema] = kind.columns;
        let in_schema = if schema.is_empty() {
            "true".to_owned()
        } else {
            let own = format!(
                "(SELECT s.nspname FROM pg_catalog.pg_namespace AS s WHERE s.oid OPERATOR(pg_catalog.=) c.{schema})"
            );
            format!(
                "CASE WHEN a.schema IS NULL THEN pg_catalog.array_position(pg_catalog.current_schemas(true), {own}) IS NOT NULL
                 ELSE {own}::pg_catalog.text OPERATOR(pg_catalog.=) a.schema END"
            )
        };
        let filled = sql::LOCK_OF_OBJECTS.replace("$in_schema", &in_schema).replace("$catalog", catalog);
        queries.push(filled.replace("$name", name).replace("$asked", &asked.join(", ")));
    }
    queries
}

fn value(row: &SimpleQueryRow, column: usize) -> Option<&str> {
    row.try_get(column).ok().flatten()
}

fn read(one: &mut Resolution, row: &SimpleQueryRow) {
    match (row.len(), &mut *one) {
        (7, _) => {
            if let Some(relation) = relation(row) {
                *one = Resolution::Relation(relation);
            }
        }
        (6, Resolution::Relation(relation)) => {
            if let Some(other) = other(row) {
                relation.below += usize::from(other.role == Role::Below);
                relation.others.push(other);
            }
        }
        (6, Resolution::Missing(_)) if value(row, 1) == Some("object") => {
            let oid = value(row, 2).and_then(|oid| oid.parse().ok());
            *one = Resolution::Object(oid.into_iter().collect(), Vec::new());
        }
        (6, Resolution::Object(oids, others)) => match other(row) {
            Some(other) => others.push(other),
            None => oids.extend(value(row, 2).and_then(|oid| oid.parse::<u32>().ok())),
        },
        (2, Resolution::Missing(schemas)) => schemas.extend(value(row, 1).map(str::to_owned)),
        _ => {}
    }
}

fn relation(row: &SimpleQueryRow) -> Option<CatalogRelation> {
    let pages: u64 = value(row, 5)?.parse().unwrap_or_default();
    Some(CatalogRelation {
        oid: value(row, 1)?.parse().ok()?,
        schema: value(row, 2)?.to_owned(),
        kind: value(row, 3)?.chars().next()?,
        // -1: never counted.
        rows: value(row, 4)?.parse().ok().filter(|rows: &f64| *rows >= 0.0),
        bytes: pages.saturating_mul(8192),
        table: value(row, 6).and_then(|oid| oid.parse().ok()),
        ..CatalogRelation::default()
    })
}

fn other(row: &SimpleQueryRow) -> Option<Other> {
    let role = value(row, 1)?.parse().ok()?;
    let names = value(row, 5).unwrap_or_default().trim_matches(['{', '}']);
    Some(Other {
        role,
        oid: value(row, 2)?.parse().ok()?,
        name: format!("{}.{}", value(row, 3)?, value(row, 4)?),
        names: names
            .split(',')
            .filter(|name| !name.is_empty())
            .map(|name| name.trim_matches('"').to_owned())
            .collect(),
    })
}
