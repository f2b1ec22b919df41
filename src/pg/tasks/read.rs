//! Reading the task tables within a poll.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{join, join_all};
use tokio_postgres::Client;

use super::statements::{RUNNING, TASKS};
use super::{Reader, Tasks, rows};
use crate::model::lock::Lock;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::task::{Execution, Schedule, TaskSet, TaskTables};
use crate::model::{Text, Timestamp};
use crate::pg::decode::texts::Texts;
use crate::pg::section_error::SectionError;
use crate::pg::tables::{self, Copying, Reading, Refusal, blocker, every, has_changed};

/// Schedules that a poll may read on average: ten thousand are read in every eleventh.
const TASKS_EACH: usize = 1000;
/// Executions that a poll may read on average, beside the running ones.
const EXECUTIONS_EACH: usize = 501;

/// What one table brought.
#[derive(Debug)]
enum Brought {
    /// Its rows.
    All(Vec<Bytes>),
    /// The same, but all there are, in no order.
    Copy(Vec<Bytes>),
    /// The same, of the running executions alone.
    Running(Vec<Bytes>),
    /// It was not asked for this time.
    Nothing,
}

impl Brought {
    /// Polls to let pass after it.
    fn rest(&self) -> u32 {
        match self {
            Self::Copy(messages) => Copying::rest(messages),
            Self::All(_) | Self::Running(_) | Self::Nothing => 0,
        }
    }
}

type Answer = Result<Brought, Refusal>;

/// What the tables brought, in the order of the readers.
#[derive(Debug, Default)]
pub(in crate::pg) struct Found(Vec<(Answer, Option<Answer>)>);

impl Found {
    /// The error of the connection, where it is not only a statement that failed.
    pub(in crate::pg) fn fatal(&self) -> Option<&SectionError> {
        let all = self.0.iter().flat_map(|(tasks, log)| std::iter::once(tasks).chain(log.as_ref()));
        all.filter_map(|answer| answer.as_ref().err()).find_map(Refusal::fatal)
    }
}

impl Tasks {
    /// Sends the statements, and waits for their answers. A table that was locked exclusively in `before` is not
    /// asked for: the statement would only wait.
    pub(in crate::pg) async fn read(&self, client: &Client, before: Option<&Snapshot>) -> Found {
        let locked = |oid: u32| before.is_some_and(|before| blocker(&before.locks, oid).is_some());
        let each = self.readers.iter().map(|reader| {
            let tables = &reader.tables;
            let tasks_locked = locked(tables.table);
            let log_locked = tables.log.is_some_and(locked) || tasks_locked;
            let old = before.and_then(|before| same(before, reader));
            join(schedules(client, reader, old, tasks_locked), executions(client, reader, old, log_locked))
        });
        Found(join_all(each).await)
    }
}

/// What was read of the same tables before.
fn same<'a>(before: &'a Snapshot, reader: &Reader) -> Option<&'a TaskSet> {
    before.task_sets.iter().find(|set| set.tables == reader.tables)
}

async fn schedules(client: &Client, reader: &Reader, old: Option<&TaskSet>, locked: bool) -> Answer {
    if reader.schedules_in > 0 && old.is_some() {
        return Ok(Brought::Nothing);
    }
    let reading = reader.schedules.as_ref().map_err(|reason| Refusal::Unreadable(reason.clone()))?;
    all(client, reading, locked).await
}

async fn all(client: &Client, reading: &Reading, locked: bool) -> Answer {
    let rows = reading.read(client, locked).await?;
    Ok(if reading.is_copy() { Brought::Copy(rows) } else { Brought::All(rows) })
}

async fn executions(client: &Client, reader: &Reader, old: Option<&TaskSet>, locked: bool) -> Option<Answer> {
    let reading = match reader.executions.as_ref()? {
        Ok(reading) => reading,
        Err(reason) => return Some(Err(Refusal::Unreadable(reason.clone()))),
    };
    let rests = reader.executions_in > 0 && old.is_some();
    Some(match reader.running.as_ref().filter(|_| rests) {
        Some(running) => running.read(client, locked).await.map(Brought::Running),
        None if rests && reading.is_copy() => Ok(Brought::Nothing),
        None => all(client, reading, locked).await,
    })
}

/// The sets of a snapshot, from what was found; what was not read comes from the sets before. `locks` are those of the
/// same snapshot and say who is in the way.
pub(in crate::pg) fn sections(
    tasks: &mut Tasks,
    found: Found,
    before: Option<&Snapshot>,
    locks: &Section<Lock>,
    taken_at: Timestamp,
) -> Arc<Vec<TaskSet>> {
    if let (Some(reason), Some(before)) = (&tasks.unknown, before) {
        return Arc::new(before.task_sets.iter().map(|set| aged(set, reason)).collect());
    }
    let Tasks { readers, texts, failed, .. } = tasks;
    let nothing = TaskSet::default();
    let sets = readers.iter_mut().zip(found.0).map(|(reader, (schedules, executions))| {
        let old = before.and_then(|before| same(before, reader));
        let mut turn = Turn {
            reader,
            texts: &mut *texts,
            failed: &mut *failed,
            old: old.unwrap_or(&nothing),
            locks,
            taken_at,
        };
        turn.set(schedules, executions)
    });
    Arc::new(sets.collect())
}

/// A set of an earlier snapshot, when nobody knows whether its tables are still there.
fn aged(set: &TaskSet, reason: &Text) -> TaskSet {
    let executions = match set.tables.executions {
        Some(_) => set.executions.stale(reason.clone()),
        None => set.executions.clone(),
    };
    TaskSet::new(Arc::clone(&set.tables), set.tasks.stale(reason.clone()), executions)
        .cut(set.tasks_cut, set.running_cut)
}

/// One set of one snapshot.
struct Turn<'a> {
    reader: &'a mut Reader,
    texts: &'a mut Texts,
    failed: &'a mut bool,
    old: &'a TaskSet,
    locks: &'a Section<Lock>,
    taken_at: Timestamp,
}

impl Turn<'_> {
    fn set(&mut self, schedules: Answer, executions: Option<Answer>) -> TaskSet {
        let (mut tasks_cut, mut running_cut) = (self.old.tasks_cut, self.old.running_cut);
        let rest = schedules.as_ref().map_or(0, Brought::rest);
        let tasks = match schedules.and_then(|brought| self.schedules(brought)) {
            Ok(Some(mut rows)) => {
                tasks_cut = rows.len() > TASKS;
                rows.truncate(TASKS);
                self.reader.schedules_in = rest.max(every(rows.len(), TASKS_EACH));
                Section::fresh(rows, self.taken_at)
            }
            Ok(None) => {
                self.reader.schedules_in = self.reader.schedules_in.saturating_sub(1);
                self.old.tasks.clone()
            }
            Err(refusal) => {
                self.reader.schedules_in = 0;
                self.old.tasks.stale(self.reason(&refusal, false))
            }
        };
        let executions = match executions.map(|answer| answer.and_then(|brought| self.executions(brought))) {
            None => Section::default(),
            Some(Ok(Some(rows))) => {
                let running = rows.iter().filter(|execution| execution.is_running()).count();
                running_cut = !self.reader.has_all() && (self.reader.running.is_none() || running > RUNNING);
                Section::fresh(rows, self.taken_at)
            }
            Some(Ok(None)) => {
                self.reader.executions_in = self.reader.executions_in.saturating_sub(1);
                self.old.executions.clone()
            }
            Some(Err(refusal)) => {
                self.reader.executions_in = 0;
                self.old.executions.stale(self.reason(&refusal, true))
            }
        };
        TaskSet::new(Arc::clone(&self.reader.tables), tasks, executions).cut(tasks_cut, running_cut)
    }

    /// None where they were not asked for.
    fn schedules(&mut self, brought: Brought) -> Result<Option<Vec<Schedule>>, Refusal> {
        let (messages, in_order) = match brought {
            Brought::All(messages) | Brought::Running(messages) => (messages, true),
            Brought::Copy(messages) => (messages, false),
            Brought::Nothing => return Ok(None),
        };
        let read = rows::schedules(&messages, self.texts);
        let mut rows = read.map_err(|error| Refusal::Section(error.into()))?;
        if !in_order {
            rows.sort_by_key(|row| row.id);
        }
        Ok(Some(rows))
    }

    /// Those that were read; where these are the running ones alone, with those that were over before. None where they were not
    /// asked for.
    fn executions(&mut self, brought: Brought) -> Result<Option<Vec<Execution>>, Refusal> {
        let rest = brought.rest();
        let (messages, all) = match brought {
            Brought::All(messages) | Brought::Copy(messages) => (messages, true),
            Brought::Running(messages) => (messages, false),
            Brought::Nothing => return Ok(None),
        };
        let read = rows::executions(&messages, self.texts);
        let mut rows = read.map_err(|error| Refusal::Section(error.into()))?;
        if all {
            // A copy brings every row there is, and its bytes are what counts.
            let every = if self.reader.has_all() { 0 } else { every(rows.len(), EXECUTIONS_EACH) };
            self.reader.executions_in = rest.max(every);
        } else {
            self.reader.executions_in = self.reader.executions_in.saturating_sub(1);
            let over = self.old.executions.rows.iter().filter(|execution| !execution.is_running());
            rows.extend(over.cloned());
        }
        Ok(Some(rows::last_of_each(rows)))
    }

    /// One line for the section. A lock is told with its holder. Where the tables may not be what they were, they are
    /// looked for again.
    fn reason(&mut self, refusal: &Refusal, log: bool) -> Text {
        *self.failed |= has_changed(refusal);
        reason(refusal, &self.reader.tables, self.locks, log)
    }
}

/// One line for the section. A lock is told with its holder.
fn reason(refusal: &Refusal, pair: &TaskTables, locks: &Section<Lock>, log: bool) -> Text {
    let (oid, name) = match (pair.log, &pair.executions) {
        (Some(oid), Some(name)) if log && blocker(locks, pair.table).is_none() => (oid, name),
        _ => (pair.table, &pair.schedules),
    };
    tables::reason(refusal, oid, name, locks)
}
