//! Reading tables of one kind within a poll.

use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio_postgres::Client;

use crate::model::lock::Lock;
use crate::model::snapshot::Section;
use crate::model::systems::{Source, TableRows};
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::{CopyReader, Fields};
use crate::pg::decode::texts::Texts;
use crate::pg::scope::Scope;
use crate::pg::section_error::SectionError;
use crate::pg::tables::{self, Columns, Copying, Plan, Reading, Refusal, Table, blocker, every, has_changed};

/// A table that is to be read, or a name in the config that leads to none, and why.
#[derive(Debug)]
pub(super) enum Chosen<'a> {
    Table(&'a Table),
    Refused(Text, Text),
}

/// What is read of one kind of table.
pub(super) trait Rows: Clone {
    /// The usual name of the table.
    const TABLE: &'static str;
    /// Columns of the query.
    const COLUMNS: usize;
    /// Rows that are kept; the query brings one more where there are more.
    const MOST: usize;
    /// Rows that a poll may read on average.
    const EACH: usize;

    /// What is missing for a table to be one of this kind, to follow its name: a stranger's may bear the same.
    fn lacks(table: &Table) -> Option<&'static str>;

    /// The query, made of what the table has.
    fn query(table: &Table) -> Result<String, Text>;

    /// What is copied of a table whose owner is not trusted.
    fn copied() -> Columns;

    /// Columns of the query behind those: a copy has nothing in them.
    const EXTRA: usize = 0;

    /// The rows of a copy, in the order of the query, and without those that it leaves out.
    fn choose(rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows
    }

    /// What a copy brought, chosen here.
    fn of_copy(messages: &[Bytes], texts: &mut Texts, now: Timestamp) -> Result<Vec<Self>, DecodeError> {
        Ok(Self::choose(decoded(messages, Self::COLUMNS, texts, Self::read)?, now))
    }

    /// One row of it.
    fn read(fields: &mut Fields<'_>, texts: &mut Texts) -> Result<Option<Self>, DecodeError>;

    /// Whether it is as locktop makes it: its rows are locked by keys of a namespace of their own, and are changed by its functions.
    fn own_keys(_: &Table) -> bool {
        false
    }

    /// What is kept of the rows, and whether there are more.
    fn tidy(mut rows: Vec<Self>) -> (Vec<Self>, bool) {
        let is_cut = rows.len() > Self::MOST;
        rows.truncate(Self::MOST);
        (rows, is_cut)
    }

    /// How much the server had to read for these rows.
    fn cost(rows: &[Self]) -> usize {
        rows.len()
    }
}

/// Rows, those left out that make none.
pub(super) fn decoded<T>(
    messages: &[Bytes],
    columns: usize,
    texts: &mut Texts,
    mut read: impl FnMut(&mut Fields<'_>, &mut Texts) -> Result<Option<T>, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let (mut reader, mut rows) = (CopyReader::default(), Vec::new());
    for message in messages {
        reader.read(message, columns, |fields| {
            rows.extend(read(fields, texts)?);
            Ok(())
        })?;
    }
    Ok(rows)
}

/// A table and how to read it; or why it cannot be read.
#[derive(Debug)]
pub(super) struct Reader<T> {
    source: Arc<Source>,
    reading: Result<Reading, Text>,
    /// Polls until it is read again.
    rest: u32,
    kind: PhantomData<fn() -> T>,
}

/// The messages of a COPY; none where the table was not asked for this time.
pub(super) type Answer = Result<Option<Vec<Bytes>>, Refusal>;

impl<T: Rows> Reader<T> {
    pub(super) async fn prepare(
        client: &Client,
        chosen: Chosen<'_>,
        scope: Scope,
    ) -> Result<Self, SectionError> {
        let (source, reading) = match chosen {
            Chosen::Refused(name, reason) => (Source { name, ..Source::default() }, Err(reason)),
            Chosen::Table(table) => {
                let source = Source {
                    table: table.oid,
                    name: table.label().into(),
                    own_keys: T::own_keys(table),
                    key_rule: table.key_rule.clone(),
                    has_function: table.has_function,
                    owner: table.owner(),
                    growth: table.growth(),
                };
                match table.allowed().and_then(|()| plan::<T>(table)) {
                    Ok(plan) => (source, plan.prepare(client, scope).await?),
                    Err(reason) => (source, Err(reason)),
                }
            }
        };
        Ok(Self { source: Arc::new(source), reading, rest: 0, kind: PhantomData })
    }

    async fn answer(&self, client: &Client, has_old: bool, is_locked: bool) -> Answer {
        if self.rest > 0 && has_old {
            return Ok(None);
        }
        let reading = self.reading.as_ref().map_err(|reason| Refusal::Unreadable(reason.clone()))?;
        reading.read(client, is_locked).await.map(Some)
    }

    fn is_copy(&self) -> bool {
        self.reading.as_ref().is_ok_and(Reading::is_copy)
    }
}

fn plan<T: Rows>(table: &Table) -> Result<Plan, Text> {
    if table.stranger.is_some() {
        return Ok(Plan::Copy(Box::new(table.clone()), T::copied(), T::EXTRA));
    }
    Ok(Plan::query(&[table], &T::query(table)?))
}

/// What was read of the same table before.
fn same<'a, T>(old: Option<&'a [TableRows<T>]>, source: &Source) -> Option<&'a TableRows<T>> {
    old?.iter().find(|table| *table.source == *source)
}

/// Reads all tables of a kind at once.
pub(super) async fn read<T: Rows>(
    client: &Client,
    readers: &[Reader<T>],
    old: Option<&[TableRows<T>]>,
    locks: Option<&Section<Lock>>,
) -> Vec<Answer> {
    let each = readers.iter().map(|reader| {
        let is_locked = locks.is_some_and(|locks| blocker(locks, reader.source.table).is_some());
        reader.answer(client, same(old, &reader.source).is_some(), is_locked)
    });
    join_all(each).await
}

/// One snapshot.
pub(super) struct Turn<'a> {
    pub(super) texts: &'a mut Texts,
    /// Set where the tables may not be what they were.
    pub(super) failed: &'a mut bool,
    pub(super) locks: &'a Section<Lock>,
    pub(super) taken_at: Timestamp,
}

impl Turn<'_> {
    pub(super) fn tables<T: Rows>(
        &mut self,
        readers: &mut [Reader<T>],
        answers: Vec<Answer>,
        old: Option<&[TableRows<T>]>,
    ) -> Vec<TableRows<T>> {
        let each = readers.iter_mut().zip(answers);
        each.map(|(reader, answer)| {
            let old = same(old, &reader.source);
            self.table(reader, answer, old)
        })
        .collect()
    }

    fn table<T: Rows>(
        &mut self,
        reader: &mut Reader<T>,
        answer: Answer,
        old: Option<&TableRows<T>>,
    ) -> TableRows<T> {
        let source = Arc::clone(&reader.source);
        let before = |old: Option<&TableRows<T>>| {
            let section = old.map(|old| old.section.clone()).unwrap_or_default();
            (section, old.is_some_and(|old| old.is_cut))
        };
        let is_copy = reader.is_copy();
        let rest = match &answer {
            Ok(Some(messages)) if is_copy => Copying::rest(messages),
            _ => 0,
        };
        let (section, is_cut) = match answer.and_then(|messages| self.rows::<T>(messages, is_copy)) {
            Ok(None) => {
                reader.rest = reader.rest.saturating_sub(1);
                before(old)
            }
            Ok(Some(rows)) => {
                reader.rest = if is_copy { rest } else { every(T::cost(&rows), T::EACH) };
                let (rows, is_cut) = T::tidy(rows);
                (Section::fresh(rows, self.taken_at), is_cut)
            }
            Err(refusal) => {
                reader.rest = 0;
                *self.failed |= has_changed(&refusal);
                let reason = tables::reason(&refusal, source.table, &source.name, self.locks);
                let (section, is_cut) = before(old);
                (section.stale(reason), is_cut)
            }
        };
        TableRows { source, section, is_cut }
    }

    fn rows<T: Rows>(
        &mut self,
        messages: Option<Vec<Bytes>>,
        is_copy: bool,
    ) -> Result<Option<Vec<T>>, Refusal> {
        let Some(messages) = messages else { return Ok(None) };
        let rows = if is_copy {
            T::of_copy(&messages, self.texts, self.taken_at)
        } else {
            decoded(&messages, T::COLUMNS, self.texts, T::read)
        };
        rows.map(Some).map_err(|error| Refusal::Section(error.into()))
    }
}
