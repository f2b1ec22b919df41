//! A found table: a row of `assets/sql/tables_find.sql`.

use std::fmt::Write as _;

use postgres_protocol::escape::{escape_identifier, escape_literal};
use serde::Deserialize;
use tokio_postgres::Row;

use crate::model::Text;
use crate::model::table_rows::Growth;
use crate::model::table_rows::Owner;
use crate::model::task::KeyRule;
use crate::order::SortExt;
use crate::pg::decode::copy::CHARACTERS;
use crate::pg::decode::value::{raw, text};
use crate::pg::sql::guard;
use locktop_tasks::trust::remedy;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(in crate::pg) struct Table {
    pub(in crate::pg) oid: u32,
    pub(in crate::pg) schema: String,
    pub(in crate::pg) name: String,
    /// Position of its schema on the search path, from 1; None if it is not on it.
    pub(in crate::pg) path: Option<usize>,
    /// The names in the config that match it, counted from 1.
    pub(in crate::pg) given: Vec<usize>,
    /// Why it is not read; None if it may be read.
    pub(in crate::pg) refused: Option<String>,
    pub(in crate::pg) is_partitioned: bool,
    /// An owner of the table, a part of it or its schema that is not trusted: then no statement may name the table.
    pub(in crate::pg) stranger: Option<String>,
    /// The role that owns the table itself.
    #[serde(default)]
    pub(in crate::pg) owner: String,
    /// Zone of the session for times without a zone, in seconds east of UTC.
    pub(in crate::pg) zone: i64,
    /// A function in its schema takes advisory locks and names the table.
    #[serde(default)]
    pub(in crate::pg) has_function: bool,
    /// See [`Owner::hides`].
    #[serde(skip)]
    pub(in crate::pg) hides: Option<Text>,
    #[serde(skip)]
    pub(in crate::pg) key_rule: KeyRule,
    /// Number of rows, from the planner's statistics (`pg_class.reltuples`).
    #[serde(default)]
    pub(in crate::pg) rows: i64,
    /// Whether a setting of the database limits how long the rows are kept.
    #[serde(default)]
    pub(in crate::pg) is_limited: bool,
    /// Number of rows that are older than that.
    #[serde(default)]
    pub(in crate::pg) old_rows: Option<i64>,
    pub(in crate::pg) columns: Vec<TableColumn>,
    pub(in crate::pg) indexes: Vec<Index>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(in crate::pg) struct TableColumn {
    pub(in crate::pg) name: String,
    #[serde(rename = "type")]
    pub(in crate::pg) kind: u32,
    /// Generated column: `s` stored, `v` virtual; empty if it is not generated.
    pub(in crate::pg) generated: String,
}

/// A valid B-tree index.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "IndexRow")]
pub(in crate::pg) struct Index {
    pub(in crate::pg) is_unique: bool,
    pub(in crate::pg) rows: IndexedRows,
    /// In order; None for an expression.
    pub(in crate::pg) columns: Vec<Option<String>>,
}

/// The rows that an index covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pg) enum IndexedRows {
    All,
    /// Rows in which this column is equal to this text.
    Where(String, Vec<u8>),
    /// Some rows, by a predicate that was not understood.
    Some,
}

#[derive(Debug, Deserialize)]
struct IndexRow {
    is_unique: bool,
    is_partial: bool,
    /// A column, and the bytes of its required value.
    only: Option<(String, String)>,
    columns: Option<Vec<Option<String>>>,
}

impl From<IndexRow> for Index {
    fn from(row: IndexRow) -> Self {
        let rows = match row.only {
            _ if !row.is_partial => IndexedRows::All,
            Some((column, bytes)) => {
                bytes_of(&bytes).map_or(IndexedRows::Some, |bytes| IndexedRows::Where(column, bytes))
            }
            None => IndexedRows::Some,
        };
        Self { is_unique: row.is_unique, rows, columns: row.columns.unwrap_or_default() }
    }
}

/// Signed bytes in decimal, as the server prints a constant.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let byte = |word: &str| word.parse::<i16>().ok().and_then(|number| u8::try_from(number & 0xff).ok());
    text.split_whitespace().map(byte).collect()
}

fn begins(columns: &[Option<String>], with: &[&str]) -> bool {
    columns.len() >= with.len() && columns.iter().zip(with).all(|(one, other)| one.as_deref() == Some(other))
}

impl Table {
    fn of(row: &Row) -> Option<Self> {
        serde_json::from_str(&text(raw(row, 0))?).ok()
    }

    pub(in crate::pg) fn all(rows: &[Row]) -> Vec<Self> {
        rows.iter().filter_map(Self::of).collect()
    }

    /// `schema.table` without quotes, for messages.
    pub(in crate::pg) fn label(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    pub(in crate::pg) fn named(&self) -> NamedTable<'_> {
        NamedTable {
            oid: self.oid,
            schema: &self.schema,
            name: &self.name,
            is_partitioned: self.is_partitioned,
        }
    }

    pub(in crate::pg) fn owner(&self) -> Owner {
        Owner {
            name: self.owner.as_str().into(),
            stranger: self.stranger.as_deref().map(Text::from),
            hides: self.hides.clone(),
        }
    }

    pub(in crate::pg) fn growth(&self) -> Growth {
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        Growth { rows: count(self.rows), is_limited: self.is_limited, old: self.old_rows.map(count) }
    }

    pub(in crate::pg) fn column(&self, name: &str) -> Option<&TableColumn> {
        self.columns.iter().find(|column| column.name == name && column.generated != "v")
    }

    pub(in crate::pg) fn kind(&self, column: &str) -> Option<ColumnKind> {
        self.column(column).and_then(|column| ColumnKind::of(column.kind))
    }

    pub(in crate::pg) fn is(&self, column: &str, kind: ColumnKind) -> bool {
        self.kind(column) == Some(kind)
    }

    /// Returns why the table is not read as an error.
    pub(in crate::pg) fn allowed(&self) -> Result<(), Text> {
        let name = self.label();
        match (&self.refused, &self.stranger) {
            (Some(reason), _) => Err(format!("{name} is not read: {reason}").into()),
            (None, Some(stranger)) if self.is_partitioned => {
                let remedy = remedy(stranger);
                Err(format!("{name} is not read: it is partitioned, and {stranger} is not trusted; {remedy}")
                    .into())
            }
            (None, _) => Ok(()),
        }
    }

    pub(in crate::pg) fn has_index(&self, columns: &[&str]) -> bool {
        self.indexes.iter().any(|index| index.rows == IndexedRows::All && begins(&index.columns, columns))
    }

    pub(in crate::pg) fn index_where(
        &self,
        column: &str,
        is: &str,
        then: &[&str],
    ) -> Option<&[Option<String>]> {
        let rest = |index: &'_ Index| -> Option<usize> {
            match &index.rows {
                IndexedRows::Where(name, bytes) if name == column && bytes == is.as_bytes() => Some(0),
                IndexedRows::All if begins(&index.columns, &[column]) => Some(1),
                _ => None,
            }
        };
        let found = self.indexes.iter().filter_map(|index| index.columns.get(rest(index)?..));
        let fits = found.clone().find(|columns| begins(columns, then));
        fits.or_else(|| found.clone().next().filter(|_| then.is_empty()))
    }
}

/// The tables that a name without a schema may mean, along the search path: the first trusted one, and all untrusted ones
/// before it. An untrusted table hides no other: any role that may create a schema could put one in front.
pub(in crate::pg) fn meant<'a>(tables: impl Iterator<Item = &'a Table>) -> Vec<&'a Table> {
    let mut tables: Vec<_> = tables.filter(|table| table.path.is_some()).collect();
    tables.order_by_key(|table| table.path);
    let trusted = tables.iter().position(|table| table.stranger.is_none());
    tables.truncate(trusted.map_or(tables.len(), |first| first + 1));
    tables
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pg) enum ColumnKind {
    Int,
    Oid,
    Text,
    Time,
    Bool,
    Interval,
    Number,
}

impl ColumnKind {
    /// The type that its values are read as.
    pub(in crate::pg) fn sql(self) -> &'static str {
        match self {
            Self::Int | Self::Oid => "pg_catalog.int8",
            Self::Text => "pg_catalog.text",
            Self::Time => "pg_catalog.timestamptz",
            Self::Bool => "pg_catalog.bool",
            Self::Interval | Self::Number => "pg_catalog.float8",
        }
    }

    /// The kind of a built-in type, by its OID (`src/include/catalog/pg_type.dat`).
    pub(in crate::pg) fn of(oid: u32) -> Option<Self> {
        Some(match oid {
            20 | 21 | 23 => Self::Int,
            26 => Self::Oid,
            25 | 1043 => Self::Text,
            1082 | 1114 | 1184 => Self::Time,
            16 => Self::Bool,
            1186 => Self::Interval,
            700 | 701 | 1700 => Self::Number,
            _ => return None,
        })
    }
}

/// In [`Columns`], the key that the config defines for a row: no column has this name.
const KEY: &str = "";

/// The transaction that has locked or changed a row: a system column.
const LOCKER: &str = "xmax";

/// The columns to read, in order: name, kind, and whether a row needs it. An interval is read as seconds.
pub(in crate::pg) type Columns = &'static [(&'static str, ColumnKind, bool)];

/// An expression per column; NULL if the column is missing or has another kind.
pub(in crate::pg) fn columns(table: &Table, wanted: Columns) -> String {
    let expressions = wanted
        .iter()
        .zip(0..)
        .map(|((name, kind, _), place)| format!("{} AS c{place}", expression(table, name, *kind)));
    expressions.collect::<Vec<_>>().join(",\n       ")
}

fn expression(table: &Table, name: &str, wanted: ColumnKind) -> String {
    match &table.key_rule {
        // The line end terminates a possible comment.
        KeyRule::Expression(sql) if name == KEY => return format!("({sql}\n)::pg_catalog.int8"),
        // A partition may be foreign, and has no `xmax`.
        _ if name == LOCKER && !table.is_partitioned => {
            return "t.xmax::pg_catalog.text::pg_catalog.int8".to_owned();
        }
        KeyRule::LockId if name == KEY => return expression(table, "lock_id", wanted),
        _ => {}
    }
    let column = format!("t.{name}");
    match (wanted, table.kind(name)) {
        (ColumnKind::Int, Some(ColumnKind::Int)) | (ColumnKind::Oid, Some(ColumnKind::Oid)) => {
            format!("{column}::pg_catalog.int8")
        }
        (ColumnKind::Text, Some(ColumnKind::Int)) => format!("{column}::pg_catalog.text"),
        (ColumnKind::Text, Some(ColumnKind::Text)) => {
            format!("pg_catalog.left({column}::pg_catalog.text, {CHARACTERS})")
        }
        (ColumnKind::Time, Some(ColumnKind::Time)) => format!("{column}::pg_catalog.timestamptz"),
        (ColumnKind::Bool, Some(ColumnKind::Bool)) => format!("coalesce({column}, false)"),
        (ColumnKind::Interval, Some(ColumnKind::Interval)) => {
            format!("EXTRACT(epoch FROM {column})::pg_catalog.float8")
        }
        (ColumnKind::Interval, Some(ColumnKind::Int | ColumnKind::Number)) => {
            format!("{column}::pg_catalog.float8")
        }
        (wanted, _) => format!("NULL::{}", wanted.sql()),
    }
}

#[derive(Debug, Clone, Copy)]
pub(in crate::pg) struct NamedTable<'a> {
    pub(in crate::pg) oid: u32,
    pub(in crate::pg) schema: &'a str,
    pub(in crate::pg) name: &'a str,
    pub(in crate::pg) is_partitioned: bool,
}

impl NamedTable<'_> {
    pub(in crate::pg) fn sql(&self) -> String {
        format!("{}.{}", escape_identifier(self.schema), escape_identifier(self.name))
    }

    /// For reading. With `ONLY`, since tables that inherit from it may have any owner; not for a partitioned table.
    pub(in crate::pg) fn source(&self) -> String {
        let only = if self.is_partitioned { "" } else { "ONLY " };
        format!("{only}{}", self.sql())
    }

    pub(in crate::pg) fn literals(&self) -> [String; 3] {
        [self.oid.to_string(), escape_literal(self.schema), escape_literal(self.name)]
    }
}

/// Locks tables in the mode that reading takes.
pub(in crate::pg) fn locked(tables: &[NamedTable<'_>]) -> String {
    tables.iter().fold(String::new(), |mut sql, table| {
        let _ = write!(sql, "\nLOCK TABLE {} IN ACCESS SHARE MODE;", table.source());
        sql
    })
}

/// The same, and then checks each table again: the table that was checked is the one that is planned. The guard must be
/// prepared where this is sent ([`crate::pg::sql::prepare_guard`]): planning it takes ten times as long as running it.
pub(in crate::pg) fn guarded(tables: &[NamedTable<'_>]) -> String {
    tables.iter().fold(locked(tables), |mut sql, table| {
        let _ = write!(sql, "\nEXECUTE {}({});", guard(), table.literals().join(", "));
        sql
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(json: &str) -> Index {
        serde_json::from_str(json).unwrap()
    }

    const PENDING: &str = r#"{"is_unique":false,"is_partial":true,"only":["status","112 101 110 100 105 110 103 "],"columns":["created_at","id"]}"#;

    fn all(columns: &str) -> String {
        format!(r#"{{"is_unique":false,"is_partial":false,"only":null,"columns":{columns}}}"#)
    }

    #[test]
    fn an_index_is_parsed_from_the_query_result() {
        let unique = index(r#"{"is_unique":true,"is_partial":false,"only":null,"columns":["id",null]}"#);
        let columns = vec![Some("id".into()), None];
        assert_eq!(unique, Index { is_unique: true, rows: IndexedRows::All, columns });
        let partial = |only: &str| {
            index(&format!(r#"{{"is_unique":false,"is_partial":true,"only":{only},"columns":["a\nb"]}}"#))
                .rows
        };
        assert_eq!(
            partial(r#"["status","112 101 -61 -92 "]"#),
            IndexedRows::Where("status".into(), "pe\u{e4}".as_bytes().to_vec())
        );
        assert_eq!(partial(r#"["status","x"]"#), IndexedRows::Some);
        assert_eq!(partial("null"), IndexedRows::Some);
    }

    #[test]
    fn only_an_index_that_surely_has_the_rows_is_used() {
        let table = |indexes: &[&str]| Table {
            indexes: indexes.iter().map(|it| index(it)).collect(),
            ..Table::default()
        };
        let some = r#"{"is_unique":false,"is_partial":true,"only":null,"columns":["status"]}"#;
        let other = r#"{"is_unique":false,"is_partial":true,"only":["status","97 "],"columns":["status"]}"#;
        for (index, then, expected) in [
            (PENDING, &["created_at"][..], Some("created_at id")),
            (PENDING, &[], Some("created_at id")),
            (PENDING, &["id"], None),
            (&all(r#"["status","created_at"]"#), &["created_at"], Some("created_at")),
            (&all(r#"["status"]"#), &[], Some("")),
            (&all(r#"["status"]"#), &["created_at"], None),
            (&all(r#"["status",null]"#), &["created_at"], None),
            (some, &["status"], None),
            (other, &["status"], None),
            (&all(r#"["id","status"]"#), &["status"], None),
        ] {
            let table = table(&[index]);
            let found = table.index_where("status", "pending", then);
            let found = found.map(|columns| columns.iter().flatten().cloned().collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), expected, "{index} then {then:?}");
        }
        assert!(table(&[&all(r#"["id"]"#)]).has_index(&["id"]) && !table(&[some]).has_index(&["status"]));
    }

    #[test]
    fn a_column_name_with_a_newline_is_not_another_column() {
        let json = r#"{"oid":1,"schema":"s","name":"t","path":1,"given":[],"refused":null,"is_partitioned":false,
            "stranger":null,"zone":0,"indexes":[],
            "columns":[{"name":"id int\nid","type":23,"generated":""},{"name":"id","type":99999,"generated":""}]}"#;
        let table: Table = serde_json::from_str(json).unwrap();
        assert_eq!(table.kind("id"), None);
    }
}
