use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio_postgres::Client;

use super::source::{Reads, Source};
use crate::model::lock::Lock;
use crate::model::snapshot::Section;
use crate::model::systems::{self, TableRows};
use crate::model::task::KeyRule;
use crate::model::{Text, Timestamp};
use crate::pg::decode::texts::Texts;
use crate::pg::decode::{DecodeError, copy};
use crate::pg::scope::{Scope, SectionError};
use crate::pg::tables::{self, Copying, Reading, Refusal, Table, blocker, has_changed};

#[derive(Debug)]
pub(super) enum Chosen<'a> {
    Table(&'a Table),
    Refused(Text, Text),
}

#[derive(Debug)]
pub(super) struct Reader<T> {
    pub(super) source: Arc<systems::Source>,
    /// OID and name of the table that this one belongs to, which its query may name.
    with: Option<(u32, Text)>,
    reading: Result<Reading, Text>,
    /// The part that is read in every poll.
    part: Option<Reading>,
    /// Polls until the rest is read again.
    rest: u32,
    kind: PhantomData<fn() -> T>,
}

#[derive(Debug)]
pub(super) enum Brought {
    Rows(Vec<Bytes>),
    /// Only the part that is read in every poll.
    Part(Vec<Bytes>),
    Nothing,
}

pub(super) type Answer = Result<Brought, Refusal>;

impl<T: Source> Reader<T> {
    /// Prepares a table, with the table that it hides. `with` is the table that it belongs to, `key_rule` the lock of a row
    /// from the config.
    pub(super) async fn prepare(
        client: &Client,
        scope: Scope,
        (chosen, hides): (Chosen<'_>, Option<Text>),
        with: Option<&Table>,
        key_rule: KeyRule,
    ) -> Result<Self, SectionError> {
        let with_name = with.map(|table| (table.oid, table.label().into()));
        let table = match chosen {
            Chosen::Table(table) => &Table { hides, key_rule, ..table.clone() },
            Chosen::Refused(name, reason) => {
                let source = systems::Source { name, ..systems::Source::default() };
                return Ok(Self::new(source, with_name, Err(reason)));
            }
        };
        let source = systems::Source {
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
                Reading::copy(client, scope, table, (T::COLUMNS, T::EXTRA)).await?
            }
            Ok(()) => statement::<T>(table, with, scope),
        };
        let mut reader = Self::new(source, with_name, reading);
        if reader.reads() != Reads::Copy
            && let Some(part) = T::part(table)
        {
            reader.part = Some(Reading::query(&[table], &part, scope));
        }
        Ok(reader)
    }

    fn new(source: systems::Source, with: Option<(u32, Text)>, reading: Result<Reading, Text>) -> Self {
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
    pub(super) async fn read(&self, client: &Client, has_old: bool, locks: Option<&Section<Lock>>) -> Answer {
        let is_locked = locks.is_some_and(|locks| self.blocked(locks).is_some());
        let reading = self.reading.as_ref().map_err(|reason| Refusal::Unreadable(reason.clone()))?;
        match &self.part {
            _ if self.rest == 0 || !has_old => reading.read(client, is_locked).await.map(Brought::Rows),
            Some(part) => part.read(client, is_locked).await.map(Brought::Part),
            None => Ok(Brought::Nothing),
        }
    }
}

pub(super) fn statement<T: Source>(
    table: &Table,
    with: Option<&Table>,
    scope: Scope,
) -> Result<Reading, Text> {
    let both = with.and_then(|other| Some((other, T::query_with(table, other)?)));
    Ok(match both {
        Some((other, query)) => Reading::query(&[table, other], &query, scope),
        None => Reading::query(&[table], &T::query(table)?, scope),
    })
}

fn same<'a, T>(old: Option<&'a [TableRows<T>]>, source: &systems::Source) -> Option<&'a TableRows<T>> {
    old?.iter().find(|table| *table.source == *source)
}

pub(super) async fn read<T: Source>(
    client: &Client,
    readers: &[Reader<T>],
    old: Option<&[TableRows<T>]>,
    locks: Option<&Section<Lock>>,
) -> Vec<Answer> {
    let each = readers.iter().map(|reader| {
        let has_old = same(old, &reader.source).is_some();
        reader.read(client, has_old, locks)
    });
    join_all(each).await
}

/// The texts, locks and time of one snapshot, for decoding answers.
pub(super) struct Turn<'a> {
    pub(super) texts: &'a mut Texts,
    /// Set if the tables may have changed.
    pub(super) has_changed: bool,
    pub(super) locks: &'a Section<Lock>,
    pub(super) taken_at: Timestamp,
}

impl Turn<'_> {
    pub(super) fn tables<T: Source>(
        &mut self,
        readers: &mut [Reader<T>],
        answers: Vec<Answer>,
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
    pub(super) fn section<T: Source>(
        &mut self,
        reader: &mut Reader<T>,
        answer: Answer,
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
    fn rows<T: Source>(
        &mut self,
        reader: &mut Reader<T>,
        brought: Brought,
        before: &Section<T>,
    ) -> Result<Option<Vec<T>>, Refusal> {
        let unreadable = |error: DecodeError| Refusal::Section(error.into());
        let reads = reader.reads();
        let (rows, rest) = match brought {
            Brought::Rows(messages) if reads == Reads::Copy => {
                let rows = T::of_copy(&messages, self.texts, self.taken_at).map_err(unreadable)?;
                (Some(rows), Copying::rest(&messages))
            }
            Brought::Rows(messages) => {
                let rows = copy::rows(&messages, T::WIDTH, self.texts, T::read).map_err(unreadable)?;
                let rest = T::rest(&rows, reads);
                (Some(rows), rest)
            }
            Brought::Part(messages) => {
                let mut rows = copy::rows(&messages, T::WIDTH, self.texts, T::read).map_err(unreadable)?;
                rows.extend(before.last_rows().iter().filter(|row| row.stays()).cloned());
                (Some(rows), reader.rest.saturating_sub(1))
            }
            Brought::Nothing => (None, reader.rest.saturating_sub(1)),
        };
        reader.rest = rest;
        Ok(rows)
    }
}
