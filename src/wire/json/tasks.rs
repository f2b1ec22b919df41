use rustc_hash::FxHashMap;
use serde::Serialize;

use super::rows::{Key, Time};
use super::{SectionState, readable};
use crate::model::snapshot::Snapshot;
use crate::model::task::{TaskId, TaskRow, TaskSet, evidence};
use crate::model::view::View;
use crate::model::{Text, Timestamp};

#[derive(Debug, Serialize)]
pub(super) struct Task<'a> {
    table: &'a str,
    id: i64,
    name: Option<&'a str>,
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    enabled: Option<bool>,
    last_run_at: Option<Time>,
    next_run_at: Option<Time>,
    cron: Option<&'a str>,
    priority: Option<i64>,
    timeout: Option<f64>,
    max_attempts: Option<i64>,
    attempts: Option<i64>,
    /// Consecutive failures of the last executions, as far as they were read.
    failed_in_a_row: u32,
    state: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Execution<'a> {
    table: Option<&'a str>,
    id: i64,
    task_id: i64,
    task_name: Option<&'a str>,
    worker_id: Option<&'a str>,
    status: Option<&'a str>,
    started_at: Option<Time>,
    completed_at: Option<Time>,
    error: Option<&'a str>,
    attempt: Option<i64>,
    heartbeat_at: Option<Time>,
    backend_pid: Option<i32>,
    recovered_by: Option<&'a str>,
    lock_key: Option<Key>,
    holder_pid: Option<i32>,
    state: &'a str,
    /// The most likely state if `state` is unknown.
    maybe: Option<&'static str>,
    /// Seconds until it is an orphan if it gives no sign of life; `None` without a countdown.
    orphan_in: Option<f64>,
    /// The holder of its key, and what that proves; `None` if it is not running in the log.
    evidence: Option<String>,
}

fn text(text: Option<&Text>) -> Option<&str> {
    text.map(|text| &**text)
}

pub(super) fn tasks<'a>(view: &View, snapshot: &'a Snapshot) -> Vec<Task<'a>> {
    let mut states: FxHashMap<TaskId, (&'static str, u32)> = FxHashMap::default();
    for row in &view.tasks.rows {
        // The task of an open transaction is neither due nor overdue.
        if let Some(state) =
            row.schedule_state.map(|state| if row.state.is_uncommitted() { row.state } else { state })
        {
            states.insert(row.task, (state.certain(), row.streak.length));
        }
    }
    let state = |id: TaskId| states.get(&id).copied().unwrap_or(("idle", 0));
    let of_set = |set: &'a TaskSet| {
        readable(&set.tasks).iter().map(move |task| (set.task_id(task.id), &*set.tables.schedules, task))
    };
    let rows = snapshot.task_sets.iter().flat_map(of_set);
    rows.map(|(id, table, task)| Task {
        table,
        id: task.id,
        name: text(task.name.as_ref()),
        kind: text(task.kind.as_ref()),
        enabled: task.enabled,
        last_run_at: task.last_run_at.map(Time),
        next_run_at: task.next_run_at.map(Time),
        cron: text(task.cron.as_ref()),
        priority: task.priority,
        timeout: task.timeout,
        max_attempts: task.max_attempts,
        attempts: task.attempts,
        failed_in_a_row: state(id).1,
        state: state(id).0,
    })
    .collect()
}

pub(super) fn executions<'a>(view: &View, snapshot: &'a Snapshot) -> Vec<Execution<'a>> {
    let place = |row: &TaskRow| Some(((row.set, row.execution?), row.clone()));
    let running: FxHashMap<(usize, usize), TaskRow> = view.tasks.rows.iter().filter_map(place).collect();
    let mut rows = Vec::new();
    for (set_at, set) in snapshot.task_sets.iter().enumerate() {
        for (at, execution) in readable(&set.executions).iter().enumerate() {
            let row = running.get(&(set_at, at));
            let status = text(execution.status.as_ref());
            rows.push(Execution {
                table: text(set.tables.executions.as_ref()),
                id: execution.id,
                task_id: execution.task_id,
                task_name: set.task(execution.task_id).and_then(|task| text(task.name.as_ref())),
                worker_id: text(execution.worker.as_ref()),
                status,
                started_at: execution.started_at.map(Time),
                completed_at: execution.completed_at.map(Time),
                error: text(execution.error.as_ref()),
                attempt: execution.attempt,
                heartbeat_at: execution.heartbeat_at.map(Time),
                backend_pid: execution.backend_pid,
                recovered_by: text(execution.recovered_by.as_ref()),
                lock_key: set.key(execution).map(|key| key.lock_key().into()),
                holder_pid: row.and_then(|row| row.holder),
                state: row.map_or(status.unwrap_or("unknown"), |row| row.state.certain()),
                maybe: row.and_then(|row| row.state.guess()),
                orphan_in: row.and_then(|row| row.orphan_in),
                evidence: row.map(|row| evidence(row, snapshot)),
            });
        }
    }
    rows
}

pub(super) fn state<'a>(
    snapshot: &'a Snapshot,
    section: impl Fn(&'a TaskSet) -> (Option<Timestamp>, Option<&'a str>),
) -> SectionState<'a> {
    SectionState::all(snapshot.task_sets.iter().map(section))
}
