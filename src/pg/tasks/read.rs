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
use crate::model::task::{TaskSet, TaskTables};
use crate::model::{Text, Timestamp};
use crate::pg::poll::SectionError;

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

/// What one table brought: the messages of its COPY.
type Messages = Result<Vec<Bytes>, Refusal>;

/// What the tables brought, in the order of the readers.
#[derive(Debug, Default)]
pub(in crate::pg) struct Found(Vec<(Messages, Option<Messages>)>);

impl Found {
    /// The error of the connection, where it is not only a statement that failed.
    pub(in crate::pg) fn fatal(&self) -> Option<&SectionError> {
        let all = self.0.iter().flat_map(|(tasks, log)| std::iter::once(tasks).chain(log.as_ref()));
        all.filter_map(|messages| match messages {
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
        let each = self.readers().iter().map(|reader| {
            let tables = Arc::clone(&reader.tables);
            let tasks = read(client, &reader.schedules, locked(tables.table));
            let log_locked = tables.log.is_some_and(locked) || locked(tables.table);
            let log = async move {
                match &reader.executions {
                    Some(statement) => Some(read(client, statement, log_locked).await),
                    None => None,
                }
            };
            join(tasks, log)
        });
        Found(join_all(each).await)
    }
}

async fn read(client: &Client, statement: &Result<Statement, Text>, locked: bool) -> Messages {
    let statement = statement.as_ref().map_err(|reason| Refusal::Unreadable(reason.clone()))?;
    if locked {
        return Err(Refusal::Locked);
    }
    let copy = async {
        let messages = pin!(client.copy_out(statement).await?);
        messages.try_collect::<Vec<Bytes>>().await
    };
    copy.await.map_err(|error| Refusal::Section(error.into()))
}

/// The sets of a snapshot, from what was found; stale rows come from the sets before. `locks` are those of the same
/// snapshot and say who is in the way.
pub(in crate::pg) fn sections(
    tasks: &mut Tasks,
    found: Found,
    before: Option<&Snapshot>,
    locks: &Section<Lock>,
    taken_at: Timestamp,
) -> Arc<Vec<TaskSet>> {
    let readers = tasks.readers.clone();
    let mut sets = Vec::with_capacity(readers.len());
    for (reader, (schedules, executions)) in readers.iter().zip(found.0) {
        let old = before.and_then(|before| {
            before.task_sets.iter().find(|set| set.tables.schedules == reader.tables.schedules)
        });
        let schedules = schedules.and_then(|messages| {
            rows::schedules(&messages, tasks.texts()).map_err(|error| Refusal::Section(error.into()))
        });
        let executions = executions.map(|messages| {
            let messages = messages?;
            rows::executions(&messages, tasks.texts()).map_err(|error| Refusal::Section(error.into()))
        });
        if has_changed(&schedules) || executions.as_ref().is_some_and(has_changed) {
            tasks.failed();
        }
        sets.push(set(reader, schedules, executions, old, (locks, taken_at)));
    }
    Arc::new(sets)
}

fn set(
    reader: &Reader,
    schedules: Result<Vec<crate::model::task::Schedule>, Refusal>,
    executions: Option<Result<Vec<crate::model::task::Execution>, Refusal>>,
    old: Option<&TaskSet>,
    (locks, taken_at): (&Section<Lock>, Timestamp),
) -> TaskSet {
    let tables = &reader.tables;
    let (mut tasks_cut, mut running_cut) = old.map_or((false, false), |old| (old.tasks_cut, old.running_cut));
    let tasks = match schedules {
        Ok(mut rows) => {
            tasks_cut = rows.len() > TASKS;
            rows.truncate(TASKS);
            Section::fresh(rows, taken_at)
        }
        Err(refusal) => {
            let reason = reason(&refusal, tables, locks, false);
            old.map_or_else(
                || Section::default().stale(reason.clone()),
                |old| old.tasks.stale(reason.clone()),
            )
        }
    };
    let executions = match executions {
        None => Section::default(),
        Some(Ok(rows)) => {
            let running = rows.iter().filter(|execution| execution.is_running()).count();
            running_cut = reader.newest_only || running > RUNNING;
            Section::fresh(rows, taken_at)
        }
        Some(Err(refusal)) => {
            let reason = reason(&refusal, tables, locks, true);
            old.map_or_else(
                || Section::default().stale(reason.clone()),
                |old| old.executions.stale(reason.clone()),
            )
        }
    };
    TaskSet::new(Arc::clone(tables), tasks, executions).cut(tasks_cut, running_cut)
}

/// Whether the tables should be looked for again. One that is locked is what it was.
fn has_changed<T>(rows: &Result<T, Refusal>) -> bool {
    match rows {
        Ok(_) | Err(Refusal::Locked) => false,
        Err(Refusal::Unreadable(_)) => true,
        Err(Refusal::Section(error)) => error.code() != Some(&SqlState::LOCK_NOT_AVAILABLE),
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
