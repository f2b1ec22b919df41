//! Columns of text, as they are asked for.

/// A text column as bytes. What it holds may be invalid in a database without an encoding, and must not keep a task from
/// being run, or others with it: the server would refuse the whole answer.
pub(super) fn bytes(column: &str) -> String {
    format!(
        "pg_catalog.convert_to({column}, CASE WHEN pg_catalog.getdatabaseencoding() = 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END)"
    )
}
