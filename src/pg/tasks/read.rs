//! Reading the task tables within a poll.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::future::{join, join_all};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};

use super::statements::{RUNNING, TASKS};
use super::{Reader, Tasks, rows};
use crate::model::lock::{Lock, LockMode, LockModes, LockType};
use crate::model::snapshot::{Section, Snapshot};
use crate::model::task::{Execution, Schedule, TaskSet, TaskTables};
use crate::model::{Text, Timestamp};
use crate::pg::decode::texts::Texts;
use crate::pg::poll::SectionError;

/// Schedules that a poll may read on average: ten thousand are read in every eleventh.
const TASKS_EACH: usize = 1000;
/// Executions that a poll may read on average, beside the running ones.
const EXECUTIONS_EACH: usize = 501;
/// Polls that are let pass at most.
const LONGEST: u32 = 10;

/// Why a table was not read.
#[derive(Debug)]
enum Refusal {
    /// The server or the connection.
    Section(SectionError),
    /// Somebody held it at the last look.
    Locked,
    /// It cannot be read as it is.
    Unreadable(Text),
}

/// What one table brought.
#[derive(Debug)]
enum Brought {
    /// The messages of its COPY.
    All(Vec<Bytes>),
    /// The same, of the running executions alone.
    Running(Vec<Bytes>),
    /// It was not asked for this time.
    Nothing,
}

type Answer = Result<Brought, Refusal>;

/// What the tables brought, in the order of the readers.
#[derive(Debug, Default)]
pub(in crate::pg) struct Found(Vec<(Answer, Option<Answer>)>);

impl Found {
    /// The error of the connection, where it is not only a statement that failed.
    pub(in crate::pg) fn fatal(&self) -> Option<&SectionError> {
        let all = self.0.iter().flat_map(|(tasks, log)| std::iter::once(tasks).chain(log.as_ref()));
        all.filter_map(|answer| match answer {
            Err(Refusal::Section(error)) => Some(error),
            _ => None,
        })
        .find(|error| error.is_fatal())
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
    let statement = reader.schedules.as_ref().map_err(|reason| Refusal::Unreadable(reason.clone()))?;
    copied(client, statement, locked).await.map(Brought::All)
}

async fn executions(client: &Client, reader: &Reader, old: Option<&TaskSet>, locked: bool) -> Option<Answer> {
    let statement = match reader.executions.as_ref()? {
        Ok(statement) => statement,
        Err(reason) => return Some(Err(Refusal::Unreadable(reason.clone()))),
    };
    Some(match reader.running.as_ref().filter(|_| reader.executions_in > 0 && old.is_some()) {
        Some(running) => copied(client, running, locked).await.map(Brought::Running),
        None => copied(client, statement, locked).await.map(Brought::All),
    })
}

async fn copied(client: &Client, statement: &Statement, locked: bool) -> Result<Vec<Bytes>, Refusal> {
    if locked {
        return Err(Refusal::Locked);
    }
    let copy = async {
        let messages = pin!(client.copy_out(statement).await?);
        messages.try_collect::<Vec<Bytes>>().await
    };
    copy.await.map_err(|error| Refusal::Section(error.into()))
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
        let tasks = match schedules.and_then(|brought| self.schedules(brought)) {
            Ok(Some(mut rows)) => {
                tasks_cut = rows.len() > TASKS;
                rows.truncate(TASKS);
                self.reader.schedules_in = every(rows.len(), TASKS_EACH);
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
            Some(Ok(rows)) => {
                let running = rows.iter().filter(|execution| execution.is_running()).count();
                running_cut = self.reader.running.is_none() || running > RUNNING;
                Section::fresh(rows, self.taken_at)
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
        match brought {
            Brought::All(messages) | Brought::Running(messages) => rows::schedules(&messages, self.texts)
                .map(Some)
                .map_err(|error| Refusal::Section(error.into())),
            Brought::Nothing => Ok(None),
        }
    }

    /// Those that were read; where these are the running ones alone, with those that were over before.
    fn executions(&mut self, brought: Brought) -> Result<Vec<Execution>, Refusal> {
        let (messages, all) = match brought {
            Brought::All(messages) => (messages, true),
            Brought::Running(messages) => (messages, false),
            Brought::Nothing => (Vec::new(), false),
        };
        let read = rows::executions(&messages, self.texts);
        let mut rows = read.map_err(|error| Refusal::Section(error.into()))?;
        if all {
            self.reader.executions_in = every(rows.len(), EXECUTIONS_EACH);
        } else {
            self.reader.executions_in = self.reader.executions_in.saturating_sub(1);
            let over = self.old.executions.rows.iter().filter(|execution| !execution.is_running());
            rows.extend(over.cloned());
        }
        Ok(rows::last_of_each(rows))
    }

    /// One line for the section. A lock is told with its holder. Where the tables may not be what they were, they are
    /// looked for again.
    fn reason(&mut self, refusal: &Refusal, log: bool) -> Text {
        *self.failed |= has_changed(refusal);
        reason(refusal, &self.reader.tables, self.locks, log)
    }
}

/// How many polls to let pass after so many rows, so that a poll has about `each` of them to read.
fn every(rows: usize, each: usize) -> u32 {
    u32::try_from(rows / each).unwrap_or(u32::MAX).min(LONGEST)
}

/// Whether the tables should be looked for again. One that is locked is what it was.
fn has_changed(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Locked => false,
        Refusal::Unreadable(_) => true,
        Refusal::Section(error) => error.code() != Some(&SqlState::LOCK_NOT_AVAILABLE),
    }
}

/// One line for the section. A lock is told with its holder.
fn reason(refusal: &Refusal, tables: &TaskTables, locks: &Section<Lock>, log: bool) -> Text {
    let (oid, name) = match (tables.log, &tables.executions) {
        (Some(oid), Some(name)) if log && blocker(locks, tables.table).is_none() => (oid, name),
        _ => (tables.table, &tables.schedules),
    };
    let locked = || match blocker(locks, oid) {
        Some(lock) => format!("{name} is locked: {}", holder(lock)),
        None => format!("{name} was locked a moment ago"),
    };
    match refusal {
        Refusal::Locked => locked().into(),
        Refusal::Unreadable(reason) => reason.clone(),
        Refusal::Section(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => locked().into(),
        Refusal::Section(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            format!("{error}; GRANT SELECT ON {name} would help").into()
        }
        Refusal::Section(error) => format!("{name}: {error}").into(),
    }
}

fn holder(lock: &Lock) -> String {
    let who = lock.pid.map_or_else(|| "a prepared transaction".to_owned(), |pid| pid.to_string());
    let verb = if lock.granted { "holds" } else { "waits for" };
    format!("{who} {verb} {}", lock.mode.as_str())
}

/// Who keeps readers out of a table of our own database: its holder, else somebody who waits to be.
fn blocker(locks: &Section<Lock>, oid: u32) -> Option<&Lock> {
    if oid == 0 || locks.error.is_some() {
        return None;
    }
    let read = LockModes::of(LockMode::AccessShare);
    let mut blocking = locks.rows.iter().filter(|lock| {
        lock.tag.relation == Some(oid)
            && lock.tag.locktype == LockType::Relation
            && lock.mode.conflicts_with(read)
    });
    blocking.clone().find(|lock| lock.granted).or_else(|| blocking.next())
}
