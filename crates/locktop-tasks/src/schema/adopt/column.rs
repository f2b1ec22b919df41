//! Columns of the published tables, which may lack some, have others, or have other types.

use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;

/// The type that a column must have to be read. Only built-in types are read, since that runs no user-defined code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Integer,
    Text,
    Boolean,
    Time,
    Json,
}

impl ColumnKind {
    /// OIDs of the types of this kind (`src/include/catalog/pg_type.dat`), their names, and the type that it is read as.
    fn types(self) -> (&'static [u32], &'static str, &'static str) {
        match self {
            Self::Integer => (&[20, 21, 23], "integer or bigint", "int8"),
            Self::Text => (&[25, 1043], "text or varchar", "text"),
            Self::Boolean => (&[16], "boolean", "bool"),
            Self::Time => (&[1184, 1114], "timestamptz or timestamp", "timestamptz"),
            Self::Json => (&[3802, 114], "jsonb or json", "jsonb"),
        }
    }

    pub(super) fn shown(self) -> &'static str {
        self.types().1
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Column {
    pub(super) name: String,
    /// The OID of its type (`pg_attribute.atttypid`).
    #[serde(rename = "type")]
    pub(super) of: u32,
    pub(super) shown: String,
}

impl Column {
    fn is(&self, name: &str, kind: ColumnKind) -> bool {
        self.name == name && kind.types().0.contains(&self.of)
    }
}

/// `alias.column::type`, or a null of that type if there is no such column.
pub(super) fn expression(columns: &[Column], alias: &str, name: &str, kind: ColumnKind) -> String {
    let (_, _, kind_name) = kind.types();
    if has(columns, name, kind) {
        format!("{alias}.{}::pg_catalog.{kind_name}", escape_identifier(name))
    } else {
        format!("NULL::pg_catalog.{kind_name}")
    }
}

pub(super) fn has(columns: &[Column], name: &str, kind: ColumnKind) -> bool {
    columns.iter().any(|column| column.is(name, kind))
}

/// The columns that are not read, each with its type.
pub(super) fn left_out(columns: &[Column], read: &[(&str, ColumnKind)]) -> Vec<String> {
    let is_read = |column: &Column| read.iter().any(|(name, kind)| column.is(name, *kind));
    columns
        .iter()
        .filter(|column| !is_read(column))
        .map(|column| format!("{} ({})", column.name, column.shown))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_of_another_type_is_null_and_told() {
        let column =
            |name: &str, of, shown: &str| Column { name: name.to_owned(), of, shown: shown.to_owned() };
        let columns =
            [column("id", 23, "integer"), column("payload", 25, "text"), column("a\"b", 99, "mine")];
        assert_eq!(expression(&columns, "t", "id", ColumnKind::Integer), "t.\"id\"::pg_catalog.int8");
        assert_eq!(expression(&columns, "t", "payload", ColumnKind::Json), "NULL::pg_catalog.jsonb");
        assert_eq!(expression(&columns, "t", "worker_id", ColumnKind::Text), "NULL::pg_catalog.text");
        let read = [("id", ColumnKind::Integer), ("payload", ColumnKind::Json)];
        assert_eq!(left_out(&columns, &read), ["payload (text)", "a\"b (mine)"]);
    }
}
