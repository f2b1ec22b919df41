/// A text column as bytes. Its value may be invalid in a database without an encoding: the server would refuse the
/// whole result, so that neither this task nor others could run.
pub(super) fn bytes(column: &str) -> String {
    format!(
        "pg_catalog.convert_to({column}, CASE WHEN pg_catalog.getdatabaseencoding() = 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END)"
    )
}
