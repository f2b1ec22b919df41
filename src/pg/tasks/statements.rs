//! The statements that read a pair of tables, made of the columns and indexes it has.

use super::find::{Pair, Table};
use crate::model::Text;
use crate::model::task::TaskTables;
use crate::pg::sql;

/// Schedules that are read at most.
pub(super) const TASKS: usize = 10_000;
/// Running executions that are read at most.
pub(super) const RUNNING: usize = 1000;
/// Tasks whose last executions are read.
const LAST_OF: usize = 400;
/// How many of each.
pub(super) const EACH: usize = 5;
/// Executions that are read where only the primary key helps.
const NEWEST: usize = 1000;

/// What a column can be read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Text,
    Time,
    Bool,
    Interval,
    Number,
}

impl Kind {
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "int" => Self::Int,
            "text" => Self::Text,
            "time" => Self::Time,
            "bool" => Self::Bool,
            "interval" => Self::Interval,
            "number" => Self::Number,
            _ => return None,
        })
    }
}

/// What is read of a table, in this order: the name, and what it is read as.
type Columns = &'static [(&'static str, Kind)];

/// The columns of [`crate::model::task::Schedule`]. A timeout is read as seconds.
pub(super) const SCHEDULE: Columns = &[
    ("id", Kind::Int),
    ("task_name", Kind::Text),
    ("task_type", Kind::Text),
    ("schedule_cron", Kind::Text),
    ("is_enabled", Kind::Bool),
    ("last_run_at", Kind::Time),
    ("next_run_at", Kind::Time),
    ("priority", Kind::Int),
    ("timeout", Kind::Interval),
    ("max_attempts", Kind::Int),
    ("attempts", Kind::Int),
];

/// The columns of [`crate::model::task::Execution`].
pub(super) const EXECUTION: Columns = &[
    ("id", Kind::Int),
    ("task_id", Kind::Int),
    ("worker_id", Kind::Text),
    ("status", Kind::Text),
    ("started_at", Kind::Time),
    ("completed_at", Kind::Time),
    ("error_message", Kind::Text),
    ("lock_id", Kind::Int),
    ("backend_pid", Kind::Int),
    ("backend_start", Kind::Time),
    ("attempt", Kind::Int),
    ("heartbeat_at", Kind::Time),
    ("recovered_by", Kind::Text),
];

/// The statements for two tables that belong together.
pub(super) fn pair(schedules: &Table, log: Option<&Table>) -> Pair {
    let own = |log: &Table| {
        ["backend_pid", "backend_start", "lock_id"].iter().all(|column| log.kind(column).is_some())
    };
    let tables = TaskTables {
        table: schedules.oid,
        log: log.map(|log| log.oid),
        schedules: schedules.label().into(),
        executions: log.map(|log| log.label().into()),
        own_keys: log.is_some_and(own) && schedules.kind("max_attempts").is_some(),
    };
    let executions = log.map(|log| allowed(log).and_then(|()| executions_text(schedules, log)));
    let running = log.filter(|log| has_running_index(log) && allowed(log).is_ok());
    Pair {
        tables,
        schedules: allowed(schedules).map(|()| tasks_text(schedules)),
        executions,
        running: running.map(|log| copy(&running_part(), log)),
    }
}

fn allowed(table: &Table) -> Result<(), Text> {
    match &table.refused {
        Some(reason) => Err(format!("{} is not read: {reason}", table.label()).into()),
        None => Ok(()),
    }
}

fn tasks_text(table: &Table) -> String {
    sql::without_comments(sql::TASKS)
        .replace("$columns", &columns(table, SCHEDULE))
        .replace("$table", &source(table))
        .replace("$limit", &(TASKS + 1).to_string())
}

/// The running executions, then the last ones of each task; each by an index, for a log only grows.
fn executions_text(schedules: &Table, log: &Table) -> Result<String, Text> {
    let by_status = has_running_index(log);
    let by_task = log.kind("started_at").is_some() && has_index(log, &["task_id", "started_at"]);
    let by_id = has_index(log, &["id"]);
    if !by_status && !by_id {
        let name = log.label();
        return Err(format!(
            "{name} has no index on (status, started_at) nor on id, and is not read: that would read all of it"
        )
        .into());
    }
    let mut parts = Vec::new();
    if by_status {
        parts.push(running_part());
    }
    if by_task && by_status {
        let last_run = if schedules.kind("last_run_at").is_some() { "t.last_run_at" } else { "NULL" };
        let text = sql::without_comments(sql::TASKS_LAST)
            .replace("$last_run_at", last_run)
            .replace("$table", &source(schedules))
            .replace("$limit", &TASKS.to_string())
            .replace("$tasks", &LAST_OF.to_string())
            .replace("$each", &EACH.to_string());
        parts.push(text);
    } else if by_id {
        parts.push(sql::without_comments(sql::TASKS_NEWEST).replace("$newest", &NEWEST.to_string()));
    }
    Ok(copy(&parts.join("\nUNION ALL\n"), log))
}

fn running_part() -> String {
    sql::without_comments(sql::TASKS_RUNNING).replace("$limit", &(RUNNING + 1).to_string())
}

fn copy(query: &str, log: &Table) -> String {
    let query = query.replace("$columns", &columns(log, EXECUTION)).replace("$log", &source(log));
    format!("COPY (\n{query}\n) TO STDOUT (FORMAT binary)")
}

fn has_running_index(log: &Table) -> bool {
    log.kind("started_at").is_some()
        && (has_index(log, &["status"]) || log.indexes.iter().any(|index| index == "unique where task_id"))
}

/// Whether there is a whole index that begins with these columns.
fn has_index(table: &Table, columns: &[&str]) -> bool {
    table.indexes.iter().any(|index| {
        let mut words = index.split(' ');
        columns.iter().all(|column| words.next() == Some(column))
    })
}

/// The table in SQL. `ONLY`, since those that inherit from it may be anybody's; not so the parts of a partitioned one.
fn source(table: &Table) -> String {
    let only = if table.is_partitioned { "" } else { "ONLY " };
    format!("{only}{}.{}", quoted(&table.schema), quoted(&table.name))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An expression for each column; NULL for one that is not there, or is something else than it should be.
fn columns(table: &Table, wanted: Columns) -> String {
    let expression = |(name, wanted): &(&str, Kind)| {
        let column = format!("t.{name}");
        match (wanted, table.kind(name)) {
            (Kind::Int, Some(Kind::Int)) => format!("{column}::pg_catalog.int8"),
            (Kind::Text, Some(Kind::Text)) => format!("pg_catalog.left({column}::pg_catalog.text, 500)"),
            (Kind::Time, Some(Kind::Time)) => format!("{column}::pg_catalog.timestamptz"),
            (Kind::Bool, Some(Kind::Bool)) => format!("coalesce({column}, false)"),
            (Kind::Interval, Some(Kind::Interval)) => {
                format!("EXTRACT(epoch FROM {column})::pg_catalog.float8")
            }
            (Kind::Interval, Some(Kind::Int | Kind::Number)) => format!("{column}::pg_catalog.float8"),
            (Kind::Int, _) => "NULL::pg_catalog.int8".to_owned(),
            (Kind::Text, _) => "NULL::pg_catalog.text".to_owned(),
            (Kind::Time, _) => "NULL::pg_catalog.timestamptz".to_owned(),
            (Kind::Bool, _) => "NULL::pg_catalog.bool".to_owned(),
            (Kind::Interval | Kind::Number, _) => "NULL::pg_catalog.float8".to_owned(),
        }
    };
    let expressions =
        wanted.iter().zip(0..).map(|(column, place)| format!("{} AS c{place}", expression(column)));
    expressions.collect::<Vec<_>>().join(",\n       ")
}
