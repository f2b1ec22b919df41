//! A source, one kind of user table, described by the rows read from it; and what reads such a table.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use locktop_tasks::sql::{fill, without_comments};
use tokio_postgres::Client;

use crate::model::id_generator::IdGenerator;
use crate::model::lock::Lock;
use crate::model::rate_limit::RateLimit;
use crate::model::snapshot::Section;
use crate::model::source_tables::{self, TableRows};
use crate::model::table_rows::table_rows;
use crate::model::task::{Execution, KeyRule, Schedule};
use crate::model::work_queue::Item;
use crate::model::{Text, Timestamp};
use crate::pg::decode::Texts;
use crate::pg::decode::{DecodeError, copy};
use crate::pg::decode::{DecodedRow, decoded};
use crate::pg::jobs::tables::{
    self, ColumnKind, Copying, Refusal, Table, TableReading, blocker, columns, every, has_changed,
};
use crate::pg::{Scope, SectionError};

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

pub(super) fn has_needed<T: TableSource>(table: &Table) -> bool {
    T::NEEDED
        .iter()
        .all(|(name, kinds)| table.kind(name).is_some_and(|kind| kinds.is_empty() || kinds.contains(&kind)))
}

pub(super) trait TableSource: Clone + DecodedRow {
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
pub struct TableLocations(pub BTreeMap<&'static str, String>);

impl TableLocations {
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

pub(super) fn filled<T: TableSource>(sql: &str, table: &Table, values: &[(&str, &str)]) -> String {
    let (columns, source) = (columns(table, T::COLUMNS), table.named().source());
    let limit = (T::MOST + 1).to_string();
    let mut all = vec![("$columns", columns.as_str()), ("$table", &source), ("$limit", &limit)];
    // For duplicate names the last value counts.
    all.extend(values);
    fill(&without_comments(sql), &all)
}

table_rows!(decoded);

#[derive(Debug)]
pub(super) enum ChosenTable<'a> {
    Table(&'a Table),
    Refused(Text, Text),
}

#[derive(Debug)]
pub(super) struct SourceReader<T> {
    pub(super) source: Arc<source_tables::Source>,
    /// OID and name of the table that this one belongs to, which its query may name.
    with: Option<(u32, Text)>,
    reading: Result<TableReading, Text>,
    /// The part that is read in every poll.
    part: Option<TableReading>,
    /// Polls until the rest is read again.
    rest: u32,
    kind: PhantomData<fn() -> T>,
}

#[derive(Debug)]
pub(super) enum SourceData {
    Rows(Vec<Bytes>),
    /// Only the part that is read in every poll.
    Part(Vec<Bytes>),
    Nothing,
}

pub(super) type SourceAnswer = Result<SourceData, Refusal>;

impl<T: TableSource> SourceReader<T> {
    /// Prepares a table, with the table that it hides. `with` is the table that it belongs to, `key_rule` the lock of a row
    /// from the config.
    pub(super) async fn prepare(
        client: &Client,
        scope: Scope,
        (chosen, hides): (ChosenTable<'_>, Option<Text>),
        with: Option<&Table>,
        key_rule: KeyRule,
    ) -> Result<Self, SectionError> {
        let with_name = with.map(|table| (table.oid, table.label().into()));
        let table = match chosen {
            ChosenTable::Table(table) => &Table { hides, key_rule, ..table.clone() },
            ChosenTable::Refused(name, reason) => {
                let source = source_tables::Source { name, ..source_tables::Source::default() };
                return Ok(Self::new(source, with_name, Err(reason)));
            }
        };
        let source = source_tables::Source {
            table: table.oid,
            name: table.label().into(),
            own_keys: T::own_keys(table),
            key_rule: table.key_rule.clone(),
            has_function: table.has_function,
            owner: table.owner(),
            growth: table.growth(),
        };
        let reading = match table.allowed() {
            Err(reason) => Err(reason),
            Ok(()) if table.stranger.is_some() => {
                TableReading::copy(client, scope, table, (T::COLUMNS, T::EXTRA)).await?
            }
            Ok(()) => statement::<T>(table, with, scope),
        };
        let mut reader = Self::new(source, with_name, reading);
        if reader.reads() != Reads::Copy
            && let Some(part) = T::part(table)
        {
            reader.part = Some(TableReading::query(&[table], &part, scope));
        }
        Ok(reader)
    }

    fn new(
        source: source_tables::Source,
        with: Option<(u32, Text)>,
        reading: Result<TableReading, Text>,
    ) -> Self {
        Self { source: Arc::new(source), with, reading, part: None, rest: 0, kind: PhantomData }
    }

    fn reads(&self) -> Reads {
        match &self.reading {
            Ok(reading) if reading.is_copy() => Reads::Copy,
            _ if self.part.is_some() => Reads::Parts,
            _ => Reads::Query,
        }
    }

    fn blocked(&self, locks: &Section<Lock>) -> Option<(u32, &Text)> {
        let with = self.with.as_ref().map(|(oid, name)| (*oid, name));
        let tables = with.into_iter().chain([(self.source.table, &self.source.name)]);
        tables.into_iter().find(|(oid, _)| blocker(locks, *oid).is_some())
    }

    /// `has_old`: there are earlier rows that may be kept.
    pub(super) async fn read(
        &self,
        client: &Client,
        has_old: bool,
        locks: Option<&Section<Lock>>,
    ) -> SourceAnswer {
        let is_locked = locks.is_some_and(|locks| self.blocked(locks).is_some());
        let reading = self.reading.as_ref().map_err(|reason| Refusal::Unreadable(reason.clone()))?;
        match &self.part {
            _ if self.rest == 0 || !has_old => reading.read(client, is_locked).await.map(SourceData::Rows),
            Some(part) => part.read(client, is_locked).await.map(SourceData::Part),
            None => Ok(SourceData::Nothing),
        }
    }
}

pub(super) fn statement<T: TableSource>(
    table: &Table,
    with: Option<&Table>,
    scope: Scope,
) -> Result<TableReading, Text> {
    let both = with.and_then(|other| Some((other, T::query_with(table, other)?)));
    Ok(match both {
        Some((other, query)) => TableReading::query(&[table, other], &query, scope),
        None => TableReading::query(&[table], &T::query(table)?, scope),
    })
}

fn same<'a, T>(old: Option<&'a [TableRows<T>]>, source: &source_tables::Source) -> Option<&'a TableRows<T>> {
    old?.iter().find(|table| *table.source == *source)
}

pub(super) async fn read<T: TableSource>(
    client: &Client,
    readers: &[SourceReader<T>],
    old: Option<&[TableRows<T>]>,
    locks: Option<&Section<Lock>>,
) -> Vec<SourceAnswer> {
    let each = readers.iter().map(|reader| {
        let has_old = same(old, &reader.source).is_some();
        reader.read(client, has_old, locks)
    });
    join_all(each).await
}

/// The texts, locks and time of one snapshot, for decoding answers.
pub(super) struct PollDecoding<'a> {
    pub(super) texts: &'a mut Texts,
    /// Set if the tables may have changed.
    pub(super) has_changed: bool,
    pub(super) locks: &'a Section<Lock>,
    pub(super) taken_at: Timestamp,
}

impl PollDecoding<'_> {
    pub(super) fn tables<T: TableSource>(
        &mut self,
        readers: &mut [SourceReader<T>],
        answers: Vec<SourceAnswer>,
        old: Option<&[TableRows<T>]>,
    ) -> Vec<TableRows<T>> {
        let each = readers.iter_mut().zip(answers);
        each.map(|(reader, answer)| {
            let old = same(old, &reader.source).map(|old| &old.section);
            let section = self.section(reader, answer, old);
            TableRows { source: Arc::clone(&reader.source), section }
        })
        .collect()
    }

    /// The rows of a table. Rows that were not read are taken from `old`.
    pub(super) fn section<T: TableSource>(
        &mut self,
        reader: &mut SourceReader<T>,
        answer: SourceAnswer,
        old: Option<&Section<T>>,
    ) -> Section<T> {
        let before = old.cloned().unwrap_or_default();
        match answer.and_then(|brought| self.rows(reader, brought, &before)) {
            Ok(Some(rows)) => {
                let (rows, is_cut) = T::tidy(rows, reader.reads());
                Section::fresh(rows, self.taken_at).cut(is_cut)
            }
            Ok(None) => before,
            Err(refusal) => {
                reader.rest = 0;
                self.has_changed |= has_changed(&refusal);
                // A lock is reported with its holder.
                let (oid, name) =
                    reader.blocked(self.locks).unwrap_or((reader.source.table, &reader.source.name));
                before.stale(tables::reason(&refusal, oid, name, self.locks))
            }
        }
    }

    /// The received rows with those that are kept; None if nothing was received.
    fn rows<T: TableSource>(
        &mut self,
        reader: &mut SourceReader<T>,
        brought: SourceData,
        before: &Section<T>,
    ) -> Result<Option<Vec<T>>, Refusal> {
        let unreadable = |error: DecodeError| Refusal::Section(error.into());
        let reads = reader.reads();
        let (rows, rest) = match brought {
            SourceData::Rows(messages) if reads == Reads::Copy => {
                let rows = T::of_copy(&messages, self.texts, self.taken_at).map_err(unreadable)?;
                (Some(rows), Copying::rest(&messages))
            }
            SourceData::Rows(messages) => {
                let rows = copy::rows(&messages, T::WIDTH, self.texts, T::read).map_err(unreadable)?;
                let rest = T::rest(&rows, reads);
                (Some(rows), rest)
            }
            SourceData::Part(messages) => {
                let mut rows = copy::rows(&messages, T::WIDTH, self.texts, T::read).map_err(unreadable)?;
                rows.extend(before.last_rows().iter().filter(|row| row.stays()).cloned());
                (Some(rows), reader.rest.saturating_sub(1))
            }
            SourceData::Nothing => (None, reader.rest.saturating_sub(1)),
        };
        reader.rest = rest;
        Ok(rows)
    }
}
