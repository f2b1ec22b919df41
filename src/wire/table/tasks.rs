//! The tasks, those that need somebody first.

use super::{columns, more, not_readable};
use crate::model::snapshot::Snapshot;
use crate::model::task::{TaskRow, TaskState};
use crate::model::view::View;
use crate::text::{Align, count, duration, one_line};

/// Tasks that are shown.
const ROWS: usize = 50;

/// As many as there are with the table, which is the last.
const HEADS: [(&str, Align); 8] = [
    ("STATE", Align::Left),
    ("TASK", Align::Left),
    ("WORKER", Align::Left),
    ("RUN", Align::Right),
    ("LIMIT", Align::Right),
    ("PID", Align::Right),
    ("NEXT", Align::Left),
    ("TABLE", Align::Left),
];

/// Nothing where there are no task tables.
pub(super) fn lines(view: &View, snapshot: &Snapshot) -> Vec<String> {
    if snapshot.task_sets.is_empty() {
        return Vec::new();
    }
    let mut refused: Vec<String> = Vec::new();
    for set in snapshot.task_sets.iter() {
        let parts = [("Tasks", &set.tasks.error), ("Executions of tasks", &set.executions.error)];
        refused.extend(parts.iter().filter_map(|(what, error)| Some(not_readable(what, error.as_ref()?))));
    }
    refused.dedup();
    if !refused.is_empty() {
        refused.insert(0, String::new());
    }
    let mut tasks: Vec<&TaskRow> = view.tasks.rows.iter().collect();
    let began = |row: &TaskRow| {
        let execution = row.execution(snapshot).and_then(|execution| execution.started_at);
        let due = || row.schedule(snapshot).and_then(|task| task.next_run_at);
        let since = execution.or_else(due);
        (since.is_none(), since)
    };
    tasks.sort_by_key(|row| (row.state, began(row), row.task, row.again));
    let counts = &view.tasks.counts;
    let numbers: Vec<String> = TaskState::ALL
        .iter()
        .filter(|state| counts.of(**state) > 0)
        .map(|state| format!("{} {}", counts.of(*state), state.as_str()))
        .collect();
    let total = count(tasks.len() as u64);
    if tasks.is_empty() && !refused.is_empty() {
        return refused;
    }
    if tasks.is_empty() {
        return vec![String::new(), "No scheduled tasks.".to_owned()];
    }
    let mut lines = refused;
    lines.extend([String::new(), format!("Tasks: {total} · {}", numbers.join(" · "))]);
    // Two tables may have tasks of the same name.
    let several = snapshot.task_sets.len() > 1;
    let rows: Vec<Vec<String>> = tasks.iter().take(ROWS).map(|row| cells(snapshot, row, several)).collect();
    lines.extend(columns::laid_out(HEADS.get(..if several { 8 } else { 7 }).unwrap_or_default(), &rows));
    lines.extend(more(tasks.len(), ROWS, "tasks"));
    lines
}

fn cells(snapshot: &Snapshot, row: &TaskRow, several: bool) -> Vec<String> {
    let execution = row.execution(snapshot);
    let worker = execution.and_then(|execution| execution.worker.as_deref()).unwrap_or_default();
    let limit = execution.map(|_| duration(row.limit)).unwrap_or_default();
    let next = match row.due_in(snapshot).filter(|_| execution.is_none()) {
        _ if row.orphan_in.is_some() => {
            format!("orphan in {}", duration(row.orphan_in.unwrap_or_default().max(0.0)))
        }
        Some(seconds) if seconds > 0.0 => format!("in {}", duration(seconds)),
        Some(seconds) => format!("{} ago", duration(-seconds)),
        None => String::new(),
    };
    let table = row.set(snapshot).map(|set| one_line(&set.tables.schedules).into_owned());
    let mut cells = vec![
        row.state.as_str().to_owned(),
        one_line(&row.name(snapshot)).into_owned(),
        one_line(worker).into_owned(),
        row.age(snapshot).map(duration).unwrap_or_default(),
        limit,
        row.holder.map(|pid| pid.to_string()).unwrap_or_default(),
        next,
    ];
    if several {
        cells.push(table.unwrap_or_default());
    }
    cells
}
