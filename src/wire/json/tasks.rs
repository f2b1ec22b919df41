use rustc_hash::FxHashMap;

use super::object::{Json, object};
use super::{SectionState, readable};
use crate::model::Timestamp;
use crate::model::snapshot::Snapshot;
use crate::model::task::{TaskId, TaskKey, TaskRow, TaskSet, evidence};
use crate::model::view::View;

pub(super) fn tasks(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let mut states: FxHashMap<TaskId, (&'static str, u32)> = FxHashMap::default();
    for row in &view.tasks.rows {
        // The task of an open transaction is neither due nor overdue.
        if let Some(state) =
            row.schedule_state.map(|state| if row.state.is_uncommitted() { row.state } else { state })
        {
            states.insert(row.task, (state.certain(), row.streak.length));
        }
    }
    let rows =
        snapshot.task_sets.iter().flat_map(|set| readable(&set.tasks).iter().map(move |task| (set, task)));
    rows.map(move |(set, task)| {
        // Consecutive failures of the last executions, as far as they were read.
        let (state, failures) = states.get(&set.task_id(task.id)).copied().unwrap_or(("idle", 0));
        object!(
            task;
            table = set.tables.schedules,
            id,
            name,
            type = task.kind,
            enabled,
            last_run_at,
            next_run_at,
            cron,
            priority,
            timeout,
            max_attempts,
            attempts,
            failed_in_a_row = failures,
            state = state,
        )
    })
}

pub(super) fn executions(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let running: FxHashMap<(usize, usize), &TaskRow> =
        view.tasks.rows.iter().filter_map(|row| Some(((row.set, row.execution?), row))).collect();
    let sets = snapshot.task_sets.iter().enumerate();
    let rows = sets.flat_map(|(set_at, set)| {
        let rows = readable(&set.executions).iter().enumerate();
        rows.map(move |(at, execution)| (set, (set_at, at), execution))
    });
    rows.map(move |(set, place, execution)| {
        let row = running.get(&place).copied();
        // `maybe` is the most likely state if `state` is unknown, `orphan_in` the seconds until it is an orphan if it
        // gives no sign of life. `evidence` is the holder of its key, and what that proves, while it runs by the log.
        object!(
            execution;
            table = set.tables.executions,
            id,
            task_id,
            task_name = set.task(execution.task_id).and_then(|task| task.name.as_ref()),
            worker_id = execution.worker,
            status,
            started_at,
            completed_at,
            error,
            attempt,
            heartbeat_at,
            backend_pid,
            recovered_by,
            lock_key = set.key(execution).map(TaskKey::lock_key),
            holder_pid = row.and_then(|row| row.holder),
            state = row.map_or(execution.status.as_deref().unwrap_or("unknown"), |row| row.state.certain()),
            maybe = row.and_then(|row| row.state.guess()),
            orphan_in = row.and_then(|row| row.orphan_in),
            evidence = row.map(|row| evidence(row, snapshot)),
        )
    })
}

pub(super) fn state<'a>(
    snapshot: &'a Snapshot,
    section: impl Fn(&'a TaskSet) -> (Option<Timestamp>, Option<&'a str>),
) -> SectionState<'a> {
    SectionState::all(snapshot.task_sets.iter().map(section))
}
