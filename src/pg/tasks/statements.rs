//! The statements that read a pair of tables, made of the columns and indexes it has.

use crate::model::Text;
use crate::model::task::TaskTables;
use crate::pg::sql;
use crate::pg::tables::{Columns, KEY, Kind, Plan, Table, columns, source};
use locktop_tasks::sql::{fill, without_comments};

/// Two tables that belong together, and the statements that read them or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    pub(super) tables: TaskTables,
    pub(super) schedules: Result<Plan, Text>,
    pub(super) executions: Option<Result<Plan, Text>>,
    /// The running executions alone; none where the log has no index for that.
    pub(super) running: Option<Plan>,
}

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
    (KEY, Kind::Int),
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
        owner: schedules.owner(),
        growth: log.map(Table::growth).unwrap_or_default(),
        own_keys: log.is_some_and(own) && schedules.kind("max_attempts").is_some(),
        key_rule: schedules.key_rule.clone(),
        has_function: schedules.has_function || log.is_some_and(|log| log.has_function),
    };
    let executions = log.map(|log| log.allowed().and_then(|()| executions_plan(schedules, log)));
    let running = log.filter(|log| log.stranger.is_none() && has_running_index(log) && log.allowed().is_ok());
    Pair {
        tables,
        schedules: schedules.allowed().map(|()| tasks_plan(schedules)),
        executions,
        running: running.map(|log| Plan::query(&[log], &part(sql::TASKS_RUNNING, log, schedules))),
    }
}

fn tasks_plan(table: &Table) -> Plan {
    if table.stranger.is_some() {
        return Plan::Copy(Box::new(table.clone()), SCHEDULE, 0);
    }
    let (columns, source) = (columns(table, SCHEDULE), source(table));
    let limit = (TASKS + 1).to_string();
    let values = [("$columns", columns.as_str()), ("$table", &source), ("$limit", &limit)];
    Plan::query(&[table], &fill(&without_comments(sql::TASKS), &values))
}

/// The running executions, then the last ones of each task; each by an index, for a log only grows.
fn executions_plan(schedules: &Table, log: &Table) -> Result<Plan, Text> {
    if log.stranger.is_some() {
        return Ok(Plan::Copy(Box::new(log.clone()), EXECUTION, 0));
    }
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
    let mut tables = vec![log];
    if by_status {
        parts.push(part(sql::TASKS_RUNNING, log, schedules));
    }
    if by_task && by_status && schedules.stranger.is_none() {
        parts.push(part(sql::TASKS_LAST, log, schedules));
        tables.push(schedules);
    } else if by_id {
        parts.push(part(sql::TASKS_NEWEST, log, schedules));
    }
    Ok(Plan::query(&tables, &parts.join("\nUNION ALL\n")))
}

/// One part of the query of the log.
fn part(template: &str, log: &Table, schedules: &Table) -> String {
    let last_run_at = if schedules.kind("last_run_at").is_some() { "t.last_run_at" } else { "NULL" };
    let running = (RUNNING + 1).to_string();
    let values = [
        ("$columns", columns(log, EXECUTION)),
        ("$log", source(log)),
        ("$table", source(schedules)),
        ("$last_run_at", last_run_at.to_owned()),
        ("$running", running),
        ("$newest", NEWEST.to_string()),
        ("$schedules", TASKS.to_string()),
        ("$tasks", LAST_OF.to_string()),
        ("$each", EACH.to_string()),
    ];
    fill(&without_comments(template), &values)
}

fn has_running_index(log: &Table) -> bool {
    log.kind("started_at").is_some() && log.index_where("status", "running", &[]).is_some()
}
