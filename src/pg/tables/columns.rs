//! Tables and columns as SQL.

use super::Table;
use crate::model::task::KeyRule;
use crate::pg::decode::row::CHARACTERS;

/// What a column can be read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pg) enum Kind {
    Int,
    Oid,
    Text,
    Time,
    Bool,
    Interval,
    Number,
}

impl Kind {
    /// What a type of the server's own is read as, by its OID (`src/include/catalog/pg_type.dat`).
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

/// Stands for the number that the config says is locked for a row, in [`Columns`]: no column has such a name.
pub(in crate::pg) const KEY: &str = "";

/// What is read of a table, in this order: the name, and what it is read as. An interval is read as seconds.
pub(in crate::pg) type Columns = &'static [(&'static str, Kind)];

/// An expression for each column; NULL for one that is not there, or is something else than it should be.
pub(in crate::pg) fn columns(table: &Table, wanted: Columns) -> String {
    let expressions = wanted
        .iter()
        .zip(0..)
        .map(|((name, kind), place)| format!("{} AS c{place}", expression(table, name, *kind)));
    expressions.collect::<Vec<_>>().join(",\n       ")
}

fn expression(table: &Table, name: &str, wanted: Kind) -> String {
    match &table.key_rule {
        // The line ends what may be a comment.
        KeyRule::Expression(sql) if name == KEY => return format!("({sql}\n)::pg_catalog.int8"),
        KeyRule::LockId if name == KEY => return expression(table, "lock_id", wanted),
        _ => {}
    }
    let column = format!("t.{name}");
    match (wanted, table.kind(name)) {
        (Kind::Int, Some(Kind::Int)) | (Kind::Oid, Some(Kind::Oid)) => format!("{column}::pg_catalog.int8"),
        (Kind::Text, Some(Kind::Int)) => format!("{column}::pg_catalog.text"),
        (Kind::Text, Some(Kind::Text)) => format!("pg_catalog.left({column}::pg_catalog.text, {CHARACTERS})"),
        (Kind::Time, Some(Kind::Time)) => format!("{column}::pg_catalog.timestamptz"),
        (Kind::Bool, Some(Kind::Bool)) => format!("coalesce({column}, false)"),
        (Kind::Interval, Some(Kind::Interval)) => {
            format!("EXTRACT(epoch FROM {column})::pg_catalog.float8")
        }
        (Kind::Interval, Some(Kind::Int | Kind::Number)) => format!("{column}::pg_catalog.float8"),
        (Kind::Int | Kind::Oid, _) => "NULL::pg_catalog.int8".to_owned(),
        (Kind::Text, _) => "NULL::pg_catalog.text".to_owned(),
        (Kind::Time, _) => "NULL::pg_catalog.timestamptz".to_owned(),
        (Kind::Bool, _) => "NULL::pg_catalog.bool".to_owned(),
        (Kind::Interval | Kind::Number, _) => "NULL::pg_catalog.float8".to_owned(),
    }
}
