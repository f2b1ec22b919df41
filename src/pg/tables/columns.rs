use super::Table;
use crate::model::task::KeyRule;
use crate::pg::decode::row::CHARACTERS;

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
pub(in crate::pg) const KEY: &str = "";

/// The transaction that has locked or changed a row: a system column.
pub(in crate::pg) const LOCKER: &str = "xmax";

/// The columns to read, in order: name and kind. An interval is read as seconds.
pub(in crate::pg) type Columns = &'static [(&'static str, ColumnKind)];

/// An expression per column; NULL if the column is missing or has another kind.
pub(in crate::pg) fn columns(table: &Table, wanted: Columns) -> String {
    let expressions = wanted
        .iter()
        .zip(0..)
        .map(|((name, kind), place)| format!("{} AS c{place}", expression(table, name, *kind)));
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
        (ColumnKind::Int | ColumnKind::Oid, _) => "NULL::pg_catalog.int8".to_owned(),
        (ColumnKind::Text, _) => "NULL::pg_catalog.text".to_owned(),
        (ColumnKind::Time, _) => "NULL::pg_catalog.timestamptz".to_owned(),
        (ColumnKind::Bool, _) => "NULL::pg_catalog.bool".to_owned(),
        (ColumnKind::Interval | ColumnKind::Number, _) => "NULL::pg_catalog.float8".to_owned(),
    }
}
