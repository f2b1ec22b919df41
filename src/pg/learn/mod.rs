//! Reads names of advisory keys: from queries of the user, and from tables of well-known software.
//!
//! The connection is shared. Each query is therefore one message of the simple protocol ("Multiple Statements in a Simple
//! Query" in the documentation): a separate read-only transaction, which nothing can interrupt and which ends with the
//! message even if the query fails. A cursor returns only the wanted rows, so a query without end costs no more than its
//! first rows, and the server truncates long values before it sends them.

mod software;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use postgres_protocol::escape::{escape_identifier, escape_literal};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleColumn};

use super::poll::{PollLimits, message};
use super::trust::{TrustedOwners, untrusted};
use super::{each_row, sql};
use crate::model::Text;
use crate::model::lock_key::LockKey;
use locktop_tasks::sql::{fill, without_comments};

pub use software::{Software, SoftwareRelation, SoftwareTable};

/// Rows of one query that are read; further rows are ignored.
pub const ROWS: usize = 10_000;
/// Longest time for one query, slightly more than the server's limit (`frame.sql`).
const TIMEOUT: Duration = Duration::from_millis(1500);

/// Sent before locktop's own queries: they cannot resolve to objects (such as operators) that another role has put into a
/// schema, and a table whose rows are filtered by a policy, which is code, is an error. ("Writing SECURITY DEFINER
/// Functions Safely" in the documentation of CREATE FUNCTION, and `row_security`.)
const TRUSTED: &str = "SET LOCAL search_path TO pg_catalog, pg_temp;\nSET LOCAL row_security TO off;";

/// The last column of the fetched rows: other statements of the message return rows, too.
const NAME: &str = "locktop_name";

#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    #[error("{}", error_text(.0))]
    Server(#[from] tokio_postgres::Error),
    /// The number or the types of the columns are wrong.
    #[error("expected (key bigint, name text) or (classid int, objid int, name text), got {0}")]
    Columns(String),
    #[error("row {row}: \"{value}\" is no {wanted}")]
    Key {
        row: usize,
        value: String,
        /// The expected type, in words.
        wanted: &'static str,
    },
    #[error("no answer within {} s", TIMEOUT.as_secs_f64())]
    Silent,
}

fn error_text(error: &tokio_postgres::Error) -> String {
    error.as_db_error().and_then(untrusted).unwrap_or_else(|| message(error))
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryNames {
    /// Without NULLs and empty names.
    pub names: Vec<(LockKey, Text)>,
    /// Whether there were more rows than [`ROWS`].
    pub cut: bool,
}

/// Runs a query of the user.
///
/// # Errors
/// If the server refuses it, it takes too long, or its rows are not keys and names.
pub async fn ask(client: &Client, limits: &PollLimits, query: &str) -> Result<QueryNames, LearnError> {
    let statement = LearnStatement::new(query);
    let asked = async {
        let shape = statement.shape(client, limits).await?;
        let before = statement.before(&limits.trusted_owners);
        answer(shape, fetch(client, &framed(shape.columns(), &before, query, limits)).await?)
    };
    let answer = asked.await;
    if answer.is_err() {
        statement.forget(client).await;
    }
    answer
}

struct LearnStatement<'a> {
    name: String,
    query: &'a str,
}

impl<'a> LearnStatement<'a> {
    fn new(query: &'a str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { name: format!("locktop_named_{number}"), query: trimmed(query) }
    }

    /// The types of its columns. The query is parsed, but not run.
    async fn shape(&self, client: &Client, limits: &PollLimits) -> Result<Shape, LearnError> {
        // The server accepts exactly one statement here, and does not look into it.
        let one = format!("PREPARE {} AS {}", self.name, self.query);
        let path = limits.trusted_owners.trusted_path(false);
        let settings = sql::all_settings(limits.statement_timeout, limits.lock_timeout);
        let asked = async {
            client.prepare(&one).await?;
            client.batch_execute(&path).await?;
            let understood = client.prepare(self.query).await;
            client.batch_execute(&settings).await?;
            understood
        };
        let prepared = tokio::time::timeout(TIMEOUT, asked).await.map_err(|_| LearnError::Silent)??;
        let types: Vec<_> =
            prepared.columns().iter().map(|column| (column.name(), column.type_().clone())).collect();
        Shape::of(&types)
    }

    /// Precedes the query in its transaction. The query is parsed, which locks what it names and runs nothing; then all of
    /// that must belong to trusted owners. Row security is that of the role: its policies belong to those owners, too.
    fn before(&self, owners: &TrustedOwners) -> String {
        let (name, query, path, guard) =
            (&self.name, self.query, owners.trusted_path(true), owners.locked_guard());
        format!(
            "{path};\nPREPARE {name} AS {query}\n;\nSET LOCAL search_path TO pg_catalog, pg_temp;\n{guard};\n\
             DEALLOCATE {name};\n{path};\nSET LOCAL row_security TO on;"
        )
    }

    /// A prepared statement survives a failed transaction.
    async fn forget(&self, client: &Client) {
        let deallocate = format!("DEALLOCATE {}", self.name);
        let _ = tokio::time::timeout(TIMEOUT, client.batch_execute(&deallocate)).await;
    }
}

pub async fn ask_software(
    client: &Client,
    limits: &PollLimits,
    place: &SoftwareTable,
) -> Result<QueryNames, LearnError> {
    let query = place
        .software
        .query()
        .replace("FROM ONLY ", &format!("FROM ONLY {}.", escape_identifier(&place.schema)));
    let before = match &place.table {
        // Locked first, so that the table that is read is the one that was checked.
        Some(table) => {
            let (schema, name) = (escape_literal(&place.schema), escape_literal(&table.name));
            let guard = limits.trusted_owners.table_guard(&table.oid.to_string(), &schema, &name, false);
            let table = format!("{}.{}", escape_identifier(&place.schema), escape_identifier(&table.name));
            format!("{TRUSTED}\nLOCK TABLE ONLY {table} IN ACCESS SHARE MODE;\n{guard};")
        }
        None => TRUSTED.to_owned(),
    };
    let text = framed(Shape::Bigint.columns(), &before, &query, limits);
    let mut answer = answer(Shape::Bigint, fetch(client, &text).await?)?;
    answer.names = answer.names.into_iter().map(|row| place.software.named(row)).collect();
    Ok(answer)
}

pub async fn installed_software(
    client: &Client,
    limits: &PollLimits,
) -> Result<(Text, Vec<SoftwareTable>), LearnError> {
    let tables = limits.trusted_owners.filled(sql::LEARN_TABLES, &[]);
    let rows =
        fetch(client, &framed(&["software", "relation", "oid", "schema"], TRUSTED, &tables, limits)).await?;
    let mut database = Text::default();
    let without_table = |software| SoftwareTable { software, schema: "pg_catalog".into(), table: None };
    let mut places: Vec<_> = Software::WITHOUT_TABLE.into_iter().map(without_table).collect();
    for mut row in rows {
        let (Some(name), oid, relation, Some(Some(kind))) =
            (row.pop().flatten(), row.pop().flatten(), row.pop().flatten(), row.pop())
        else {
            continue;
        };
        let name = from_hex(&name);
        match (kind.parse().ok(), oid.and_then(|oid| oid.parse().ok()), relation) {
            (Some(software), Some(oid), Some(relation)) => {
                let table = Some(SoftwareRelation { oid, name: relation.into() });
                places.push(SoftwareTable { software, schema: name.into(), table });
            }
            _ => database = name.into(),
        }
    }
    Ok((database, places))
}

type TextRow = Vec<Option<String>>;

async fn fetch(client: &Client, text: &str) -> Result<Vec<TextRow>, LearnError> {
    let mut rows = Vec::new();
    let is_query = |columns: &[SimpleColumn]| columns.last().is_some_and(|column| column.name() == NAME);
    let read = each_row::<LearnError>(client, text, is_query, |row| {
        rows.push(
            (0..row.len()).map(|column| row.try_get(column).ok().flatten().map(str::to_owned)).collect(),
        );
        Ok(())
    });
    tokio::time::timeout(TIMEOUT, read).await.map_err(|_| LearnError::Silent)??;
    Ok(rows)
}

fn framed(columns: &[&str], before: &str, query: &str, limits: &PollLimits) -> String {
    let frame = without_comments(sql::LEARN_FRAME);
    let number = columns.len();
    let selected = columns.iter().enumerate().map(|(place, column)| {
        if place + 1 == number {
            format!(
                "pg_catalog.encode(pg_catalog.textsend(pg_catalog.left({column}::pg_catalog.text, {NAME_CHARACTERS})), 'hex') AS {NAME}"
            )
        } else {
            format!("pg_catalog.left({column}::pg_catalog.text, {KEY_CHARACTERS})")
        }
    });
    let values = [
        ("$before", before),
        ("$columns", &selected.collect::<Vec<_>>().join(", ")),
        ("$query", trimmed(query)),
        ("$names", &columns.join(", ")),
        ("$settings", &sql::all_settings(limits.statement_timeout, limits.lock_timeout)),
    ];
    fill(&frame, &values)
}

fn trimmed(query: &str) -> &str {
    query.trim_end_matches(|end: char| end == ';' || end.is_whitespace())
}

#[cfg(test)]
mod tests;

/// Longest name that is kept, in characters.
const NAME_CHARACTERS: usize = 200;
/// Characters of a key that are read; a number has fewer.
const KEY_CHARACTERS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `(key, name)`: keys of one bigint.
    Bigint,
    /// `(classid, objid, name)`: keys of two integers.
    Pair,
}

impl Shape {
    /// A name may have any type: the server converts it to text.
    fn of(types: &[(&str, Type)]) -> Result<Self, LearnError> {
        let shape = match types {
            [(_, key), _] if is_key(key) => Some(Self::Bigint),
            [(_, classid), (_, objid), _] if is_key(classid) && is_key(objid) => Some(Self::Pair),
            _ => None,
        };
        shape.ok_or_else(|| LearnError::Columns(described(types)))
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Bigint => &["key", "name"],
            Self::Pair => &["classid", "objid", "name"],
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Bigint => "64-bit number",
            Self::Pair => "32-bit number",
        }
    }

    /// The key in the columns before the name; None if one of them is NULL.
    fn key(self, columns: &[Option<String>]) -> Result<Option<LockKey>, String> {
        match (self, columns) {
            (Self::Bigint, [Some(key)]) => number(key).map(LockKey::Bigint).map(Some),
            (Self::Pair, [Some(classid), Some(objid)]) => {
                Ok(Some(LockKey::Pair(number(classid)?, number(objid)?)))
            }
            _ => Ok(None),
        }
    }
}

fn is_key(kind: &Type) -> bool {
    [Type::INT8, Type::INT4, Type::INT2, Type::NUMERIC, Type::TEXT, Type::VARCHAR].contains(kind)
}

fn described(types: &[(&str, Type)]) -> String {
    let columns: Vec<String> = types.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    match &columns[..] {
        [] => "no columns".to_owned(),
        _ => format!("({})", columns.join(", ")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| text.to_owned())
}

/// Rows whose last column is the name, in hexadecimal digits of its bytes.
fn answer(shape: Shape, mut rows: Vec<TextRow>) -> Result<QueryNames, LearnError> {
    let cut = rows.len() > ROWS;
    rows.truncate(ROWS);
    let mut names = Vec::with_capacity(rows.len());
    for (place, mut row) in rows.into_iter().enumerate() {
        let Some(name) = row.pop().flatten() else { continue };
        let key = shape.key(&row).map_err(|value| LearnError::Key {
            row: place + 1,
            value,
            wanted: shape.wanted(),
        })?;
        let name: String = from_hex(&name).chars().take(NAME_CHARACTERS).collect();
        if let Some(key) = key.filter(|_| !name.trim().is_empty()) {
            names.push((key, name.into()));
        }
    }
    Ok(QueryNames { names, cut })
}

/// Text from hexadecimal digits, with replacement characters for invalid UTF-8.
fn from_hex(digits: &str) -> String {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Vec<u8> = digits.as_bytes().chunks(2).filter_map(byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
