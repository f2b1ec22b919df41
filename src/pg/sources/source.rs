//! What a source is: one kind of table of users, by the rows that are read of it.

use bytes::Bytes;
use locktop_tasks::sql::{fill, without_comments};

use super::places::Places;
use crate::model::task::KeyRule;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::row::{self, Values};
use crate::pg::decode::texts::Texts;
use crate::pg::tables::{Columns, Table, columns, every};

/// How the rows of a table come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// By its query, whole at each reading.
    Query,
    /// The same; between two readings by the query for a part of them.
    Parts,
    /// All of them, by a copy: its owner is not trusted.
    Copy,
}

/// A row of one kind of table.
pub(super) trait Source: Clone {
    /// The usual name of the table.
    const TABLE: &'static str;
    /// What is read of it, and what is copied where its owner is not trusted.
    const COLUMNS: Columns;
    /// Columns of the query behind those: a copy has NULL in them.
    const EXTRA: usize = 0;
    /// Columns of the query, those of the table and the extra ones.
    const WIDTH: usize = Self::COLUMNS.len() + Self::EXTRA;
    /// Rows that are kept; the query brings one more where there are more.
    const MOST: usize;
    /// What another table of this name lacks, to follow the name: a stranger's may bear the same.
    const LACKS: &'static str;
    /// Names of tables in the config beside which this one is looked for, since the config has none for it.
    const BESIDE: &'static [&'static str] = &[];

    /// Whether it is a table of this kind.
    fn is_one(table: &Table) -> bool;

    /// Whether it is as locktop makes it: its rows are locked by keys of a namespace of their own, and are changed by its functions.
    fn own_keys(_: &Table) -> bool {
        false
    }

    /// What the config says is locked for a row.
    fn key_rule(_: &Places) -> KeyRule {
        KeyRule::Unsaid
    }

    /// The query, made of what the table has; or why it is not read.
    fn query(table: &Table) -> Result<String, Text>;

    /// The same where it may name the table that this one belongs to; None where that is of no use.
    fn query_with(_table: &Table, _other: &Table) -> Option<String> {
        None
    }

    /// The query for those rows that are read in every poll, whatever the others cost; None where there is none.
    fn part(_: &Table) -> Option<String> {
        None
    }

    /// Whether a row of an earlier poll stays where the part alone is read.
    fn stays(&self) -> bool {
        false
    }

    /// One row of the query, None for one that cannot be told from others.
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError>;

    /// The rows of a copy, in the order of the query, and without those that it leaves out.
    fn choose(rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows
    }

    /// What a copy brought, chosen here.
    fn of_copy(messages: &[Bytes], texts: &mut Texts, now: Timestamp) -> Result<Vec<Self>, DecodeError> {
        Ok(Self::choose(row::rows(messages, Self::WIDTH, texts, Self::read)?, now))
    }

    /// What is kept of the rows, and whether there are more.
    fn tidy(mut rows: Vec<Self>, _: Reads) -> (Vec<Self>, bool) {
        let is_cut = rows.len() > Self::MOST;
        rows.truncate(Self::MOST);
        (rows, is_cut)
    }

    /// Polls to let pass after these rows of the query, for what the server had to read.
    fn rest(rows: &[Self], _: Reads) -> u32 {
        every(rows.len(), Self::MOST + 1)
    }
}

/// A statement with the columns, the table and the limit of its source filled in, and these values.
pub(super) fn filled<T: Source>(sql: &str, table: &Table, values: &[(&str, &str)]) -> String {
    let (columns, source) = (columns(table, T::COLUMNS), table.named().source());
    let limit = (T::MOST + 1).to_string();
    let mut all = vec![("$columns", columns.as_str()), ("$table", &source), ("$limit", &limit)];
    // Of two values of one name the last counts.
    all.extend(values);
    fill(&without_comments(sql), &all)
}

/// What is read of a table, in this order: the field of the row, how a value of it is read, and its column.
/// Without those before the semicolon a row cannot be told from others.
macro_rules! fields {
    (
        $($key:ident: $key_value:ident = $key_column:expr),+;
        $($field:ident: $value:ident = $column:expr),+ $(,)?
    ) => {
        const COLUMNS: $crate::pg::tables::Columns = &[
            $(($key_column, $crate::pg::sources::source::kind!($key_value)),)+
            $(($column, $crate::pg::sources::source::kind!($value)),)+
        ];

        fn read(
            row: &mut $crate::pg::decode::row::Values<'_, '_>,
        ) -> Result<Option<Self>, $crate::pg::decode::DecodeError> {
            let ($(Some($key),)+) = ($(row.$key_value()?,)+) else { return Ok(None) };
            Ok(Some(Self { $($key,)+ $($field: row.$value()?,)+ }))
        }
    };
}

/// The kind of a column, by the function of `Values` that reads it.
macro_rules! kind {
    (int) => {
        $crate::pg::tables::ColumnKind::Int
    };
    (small) => {
        $crate::pg::tables::ColumnKind::Int
    };
    (text) => {
        $crate::pg::tables::ColumnKind::Text
    };
    (time) => {
        $crate::pg::tables::ColumnKind::Time
    };
    (flag) => {
        $crate::pg::tables::ColumnKind::Bool
    };
    (number) => {
        $crate::pg::tables::ColumnKind::Interval
    };
}

pub(super) use {fields, kind};
