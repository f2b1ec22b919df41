//! Calls of the functions that `locktop schema install` creates, in a schema of any name.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{GenericClient, Row};

use crate::Error;

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

/// Delimits function bodies in the scripts, and so must not be in a name that a body mentions.
const BODY: &str = "$body$";

/// A schema's name as in the catalog: case matters, nothing is quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaName(String);

/// Why a name cannot be that of a schema of locktop's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name has no characters.
    #[error("a schema's name is not empty")]
    Empty,
    /// Longer than the server keeps (`NAMEDATALEN`).
    #[error("a schema's name has at most 63 bytes; this one has {0}")]
    TooLong(usize),
    /// One of the server's own: `pg_…` or `information_schema`.
    #[error("schemas named pg_… and information_schema are the server's own")]
    Reserved,
    /// It contains something that the scripts cannot carry.
    #[error("a schema's name has no control characters, and no {BODY}")]
    Unusable,
}

impl SchemaName {
    /// A name as it is, without quotes around it.
    ///
    /// # Errors
    /// If no schema of locktop's can have it.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > 63 {
            return Err(NameError::TooLong(name.len()));
        }
        if name.starts_with("pg_") || name == "information_schema" {
            return Err(NameError::Reserved);
        }
        if name.chars().any(char::is_control) || name.contains(BODY) {
            return Err(NameError::Unusable);
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as the catalog has it, without quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name for a statement, in double quotes.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.0.replace('"', "\"\""))
    }

    /// The quoted name as a string constant, for functions that read one.
    #[must_use]
    pub fn quoted_literal(&self) -> String {
        literal(&self.quoted())
    }

    /// The qualified name of an object in the schema as a string constant.
    #[must_use]
    pub fn literal_of(&self, member: &str) -> String {
        literal(&format!("{}.{member}", self.quoted()))
    }

    /// The unquoted name as a string constant.
    #[must_use]
    pub fn literal(&self) -> String {
        literal(&self.0)
    }
}

pub(crate) fn literal(text: &str) -> String {
    // An escape string reads the same whatever standard_conforming_strings is.
    let escape = if text.contains('\\') { "E" } else { "" };
    format!("{escape}'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

impl Default for SchemaName {
    fn default() -> Self {
        Self("locktop".to_owned())
    }
}

impl std::fmt::Display for SchemaName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for SchemaName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_for_both_uses() {
        for (name, quoted, literal) in [
            ("locktop", "\"locktop\"", "'\"locktop\"'"),
            ("My Jobs", "\"My Jobs\"", "'\"My Jobs\"'"),
            ("a\"b'c", "\"a\"\"b'c\"", "'\"a\"\"b''c\"'"),
            ("a\\b", "\"a\\b\"", "E'\"a\\\\b\"'"),
        ] {
            let schema = SchemaName::new(name).unwrap();
            assert_eq!(
                (schema.quoted(), schema.quoted_literal()),
                (quoted.to_owned(), literal.to_owned()),
                "{name}"
            );
        }
    }

    #[test]
    fn invalid_schema_names_are_refused() {
        for (name, error) in [
            ("", NameError::Empty),
            ("pg_jobs", NameError::Reserved),
            ("information_schema", NameError::Reserved),
            ("a\nb", NameError::Unusable),
            ("a$body$b", NameError::Unusable),
            (&"ä".repeat(32), NameError::TooLong(64)),
        ] {
            assert_eq!(SchemaName::new(name), Err(error), "{name:?}");
        }
        assert!(SchemaName::new(&"x".repeat(63)).is_ok());
    }
}
