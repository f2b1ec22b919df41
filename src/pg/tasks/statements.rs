//! The statements that read a pair of tables, made of the columns and indexes it has.

use super::find::Pair;
use crate::model::Text;
use crate::model::task::TaskTables;
use crate::pg::sql;
use crate::pg::tables::{self, Columns, Kind, Table, columns, source};

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
    let executions = log.map(|log| log.allowed().and_then(|()| executions_text(schedules, log)));
    let running = log.filter(|log| has_running_index(log) && log.allowed().is_ok());
    Pair {
        tables,
        schedules: schedules.allowed().map(|()| tasks_text(schedules)),
        executions,
        running: running.map(|log| copy(&running_part(), log)),
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
    let by_task = log.kind("started_at").is_some() && log.has_index(&["task_id", "started_at"]);
    let by_id = log.has_index(&["id"]);
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
    tables::copy(&query)
}

fn has_running_index(log: &Table) -> bool {
    log.kind("started_at").is_some() && log.index_where("status", "running", &[]).is_some()
}
