//! A source: one kind of user table, described by the rows read from it.

use std::collections::BTreeMap;

use bytes::Bytes;
use locktop_tasks::sql::{fill, without_comments};

use crate::model::id_generator::IdGenerator;
use crate::model::rate_limit::RateLimit;
use crate::model::table_rows::table_rows;
use crate::model::task::{Execution, KeyRule, Schedule};
use crate::model::work_queue::Item;
use crate::model::{Text, Timestamp};
use crate::pg::decode::rows::{DecodedRow, decoded};
use crate::pg::decode::texts::Texts;
use crate::pg::decode::{DecodeError, copy};
use crate::pg::tables::{ColumnKind, Table, columns, every};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// By its query, completely each time.
    Query,
    /// The same; between two such readings, by the query for a part of the rows.
    Parts,
    /// All rows, by COPY: the owner is not trusted.
    Copy,
}

/// Columns, and the kinds that each may have; any kind if there are none.
pub(super) type Needed = &'static [(&'static str, &'static [ColumnKind])];

pub(super) const INT: &[ColumnKind] = &[ColumnKind::Int];
pub(super) const TEXT: &[ColumnKind] = &[ColumnKind::Text];
pub(super) const INT_OR_TEXT: &[ColumnKind] = &[ColumnKind::Int, ColumnKind::Text];
pub(super) const TIME: &[ColumnKind] = &[ColumnKind::Time];
pub(super) const ANY: &[ColumnKind] = &[];

pub(super) fn has_needed<T: Source>(table: &Table) -> bool {
    T::NEEDED
        .iter()
        .all(|(name, kinds)| table.kind(name).is_some_and(|kind| kinds.is_empty() || kinds.contains(&kind)))
}

pub(super) trait Source: Clone + DecodedRow {
    const TABLE: &'static str;
    /// Further columns of the query: a copy has NULL in them.
    const EXTRA: usize = 0;
    /// Columns of the query: those of the table and the extra ones.
    const WIDTH: usize = Self::COLUMNS.len() + Self::EXTRA;
    /// Rows that are kept; the query returns one more if there are more.
    const MOST: usize;
    /// The columns that another table of this name lacks, in words to follow the name: an unrelated table may have the same
    /// name.
    const LACKS: &'static str;
    /// Tables in the config whose schemas are searched for this one, since the config has no name for it.
    const BESIDE: &'static [&'static str] = &[];

    /// The columns without which a table is unrelated.
    const NEEDED: Needed;
    /// Columns of a table of locktop's schema alone; empty if it has the same columns as a published one.
    const OWN: &'static [&'static str] = &[];
    /// The name in `[tables]` of the config for the lock of a row.
    const KEY_RULE: &'static str = "";

    fn is_one(table: &Table) -> bool {
        has_needed::<Self>(table)
    }

    /// Whether it is a table of locktop's schema: its rows are locked by keys of a namespace and changed by its functions.
    fn own_keys(table: &Table) -> bool {
        !Self::OWN.is_empty() && Self::OWN.iter().all(|column| table.kind(column).is_some())
    }

    /// The query for the existing columns and indexes, or why the table is not read.
    fn query(table: &Table) -> Result<String, Text>;

    /// The same if it may name the table that this one belongs to; None if that does not help.
    fn query_with(_table: &Table, _other: &Table) -> Option<String> {
        None
    }

    /// The query for the rows that are read in every poll, whatever the cost of the others; None if there is none.
    fn part(_: &Table) -> Option<String> {
        None
    }

    /// Whether an earlier row is kept when only the part is read.
    fn stays(&self) -> bool {
        false
    }

    /// Orders and filters the rows of a copy as the query would.
    fn choose(rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows
    }

    fn of_copy(messages: &[Bytes], texts: &mut Texts, now: Timestamp) -> Result<Vec<Self>, DecodeError> {
        Ok(Self::choose(copy::rows(messages, Self::WIDTH, texts, Self::read)?, now))
    }

    fn tidy(mut rows: Vec<Self>, _: Reads) -> (Vec<Self>, bool) {
        let is_cut = rows.len() > Self::MOST;
        rows.truncate(Self::MOST);
        (rows, is_cut)
    }

    /// Polls to skip after reading these rows, for the work of the server.
    fn rest(rows: &[Self], _: Reads) -> u32 {
        every(rows.len(), Self::MOST + 1)
    }
}

/// `[tables]` of the config, by usual name: the location of a table that its usual name does not find, in SQL syntax
/// (`distlock = "jobs.leases"`), and the lock of a row (`task_key`, `queue_key`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(pub BTreeMap<&'static str, String>);

impl Places {
    pub fn with(mut self, name: &'static str, place: &str) -> Self {
        self.0.insert(name, place.to_owned());
        self
    }

    pub(super) fn of(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn key_rule(&self, name: &str) -> KeyRule {
        self.of(name).map_or(KeyRule::Unsaid, KeyRule::parse)
    }
}

pub(super) fn filled<T: Source>(sql: &str, table: &Table, values: &[(&str, &str)]) -> String {
    let (columns, source) = (columns(table, T::COLUMNS), table.named().source());
    let limit = (T::MOST + 1).to_string();
    let mut all = vec![("$columns", columns.as_str()), ("$table", &source), ("$limit", &limit)];
    // For duplicate names the last value counts.
    all.extend(values);
    fill(&without_comments(sql), &all)
}

table_rows!(decoded);
