//! The columns of the Tasks screen, and of the Overview's pane.
//!
//! ```text
//!   STATE    TASK            WORKER       RUN LIMIT  OF LIMIT      NEXT  PID    TRY
//!   orphan   报表生成任务    worker-7  41m02s   30m  ██████████ 136%  -    -      2/3
//! ```

use std::borrow::Cow;

use super::{Cell, Column, Row, RowId, Value, age, bar, server_text, worker};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::task::{TaskRow, TaskState};
use crate::text;

pub(super) const COLUMNS: &[Column] = &[
    Column { title: "STATE", name: "state", min: 8, max: 8, right: false, rank: 0 },
    Column { title: "TASK", name: "task", min: 18, max: 36, right: false, rank: 0 },
    Column { title: "WORKER", name: "worker", min: 12, max: 24, right: false, rank: 0 },
    Column { title: "RUN", name: "run", min: 6, max: 6, right: true, rank: 0 },
    Column { title: "LIMIT", name: "limit", min: 6, max: 6, right: true, rank: 0 },
    Column { title: "OF LIMIT", name: "gauge", min: 14, max: 22, right: false, rank: 4 },
    Column { title: "NEXT", name: "next", min: 10, max: 10, right: true, rank: 1 },
    Column { title: "LAST", name: "last", min: 6, max: 6, right: true, rank: 3 },
    Column { title: "PID", name: "pid", min: 7, max: 8, right: false, rank: 2 },
    Column { title: "TRY", name: "try", min: 4, max: 5, right: true, rank: 5 },
    Column { title: "BEAT", name: "beat", min: 6, max: 6, right: true, rank: 6 },
    Column { title: "TYPE", name: "type", min: 8, max: 14, right: false, rank: 7 },
    Column { title: "CRON", name: "cron", min: 12, max: 16, right: false, rank: 8 },
    Column { title: "TABLE", name: "table", min: 14, max: 0, right: false, rank: 9 },
];

/// All tasks.
#[must_use]
pub fn task_rows(scene: &Scene<'_>) -> Vec<Row> {
    (0..u32::try_from(scene.view.tasks.rows.len()).unwrap_or(u32::MAX)).map(Row::Task).collect()
}

fn row<'a>(scene: &Scene<'a>, at: u32) -> Option<&'a TaskRow> {
    scene.view.tasks.rows.get(at as usize)
}

/// How a state looks.
pub(in crate::app) fn tone(state: TaskState) -> Tone {
    match state {
        TaskState::Orphan | TaskState::Failed => Tone::Critical,
        TaskState::MaybeOrphan
        | TaskState::Slow
        | TaskState::MaybeSlow
        | TaskState::Overdue
        | TaskState::Leaked
        | TaskState::LeftOver
        | TaskState::Settling
        | TaskState::Unknown => Tone::Warning,
        TaskState::Running | TaskState::MaybeRunning => Tone::Good,
        TaskState::Due => Tone::Plain,
        TaskState::Idle | TaskState::Disabled => Tone::Dim,
    }
}

/// `in 4m10s`, `12m ago`: when it begins, or should have begun. What runs has begun; `orphan 18s`: it will be one, if nothing is heard of it.
fn next(scene: &Scene<'_>, row: &TaskRow) -> Cell {
    if let Some(left) = row.orphan_in {
        return Cell::toned(format!("orphan {}", text::duration(left.max(0.0))), Tone::Warning);
    }
    let waiting = row.execution.is_none() && row.schedule_state != Some(TaskState::Disabled);
    match row.due_in(scene.snapshot).filter(|_| waiting) {
        Some(seconds) if seconds > 0.0 => Cell::plain(format!("in {}", text::duration(seconds))),
        Some(seconds) => {
            let late = row.state == TaskState::Overdue;
            let tone = if late { Tone::Warning } else { Tone::Plain };
            Cell::toned(format!("{} ago", text::duration(-seconds)), tone)
        }
        None => Cell::none(),
    }
}

/// `█████▌░░░  61%`: how much of its time a run has used up.
fn gauge(scene: &Scene<'_>, row: &TaskRow, room: u16) -> Cell {
    let Some(share) = row.age(scene.snapshot).filter(|_| row.limit > 0.0).map(|age| age / row.limit) else {
        return Cell::none();
    };
    let tone = if share >= 1.0 { Tone::Warning } else { Tone::Plain };
    Cell::toned(bar(share, room), tone)
}

/// `2/3`: the attempt that runs, or how many failed, and how many there are.
fn attempts(scene: &Scene<'_>, row: &TaskRow) -> Option<String> {
    let attempt = if let Some(execution) = row.execution(scene.snapshot) {
        execution.attempt
    } else {
        let failed = row.schedule(scene.snapshot).and_then(|task| task.attempts);
        // Given up and begun anew it counts from none; the log knows better.
        failed.max(Some(i64::from(row.streak.length))).filter(|failed| *failed > 0)
    };
    let most = row.schedule(scene.snapshot).and_then(|task| task.max_attempts);
    match (attempt, most) {
        (Some(attempt), Some(most)) => Some(format!("{attempt}/{most}")),
        (Some(attempt), None) => Some(attempt.to_string()),
        (None, _) => None,
    }
}

fn holder(row: &TaskRow) -> Cell {
    match (row.held, row.holder) {
        (true, Some(pid)) => Cell::plain(pid.to_string()),
        (true, None) => Cell::plain("prepared"),
        (false, _) => Cell::none(),
    }
}

pub(super) fn cell(scene: &Scene<'_>, at: u32, column: &str, room: u16) -> Cell {
    let Some(row) = row(scene, at) else { return Cell::none() };
    let (task, execution) = (row.schedule(scene.snapshot), row.execution(scene.snapshot));
    match column {
        "state" => Cell::toned(row.state.as_str(), tone(row.state)),
        "task" => server_text(Some(&row.name(scene.snapshot))),
        "worker" => worker(execution.and_then(|execution| execution.worker.as_deref()), room),
        "run" => age(row.age(scene.snapshot), Tone::Plain),
        "limit" if execution.is_some() || task.is_some_and(|task| task.timeout.is_some()) => {
            age(Some(row.limit), Tone::Dim)
        }
        "gauge" => gauge(scene, row, room),
        "next" => next(scene, row),
        "last" => age(scene.age(task.and_then(|task| task.last_run_at)), Tone::Dim),
        "pid" => holder(row),
        "try" => attempts(scene, row).map_or_else(Cell::none, Cell::plain),
        "beat" => age(scene.age(execution.and_then(|execution| execution.heartbeat_at)), Tone::Dim),
        "type" => server_text(task.and_then(|task| task.kind.as_deref())),
        "cron" => server_text(task.and_then(|task| task.cron.as_deref())),
        "table" => server_text(row.set(scene.snapshot).map(|set| &*set.tables.schedules)),
        _ => Cell::none(),
    }
}

pub(super) fn value<'a>(scene: &Scene<'a>, at: u32, column: &str) -> Value<'a> {
    let Some(row) = row(scene, at) else { return Value::Missing };
    let execution = row.execution(scene.snapshot);
    let words = |text: Option<&'a str>| text.map_or(Value::Missing, |text| Value::Text(Cow::Borrowed(text)));
    match column {
        "state" => Value::state(row.state.as_str()),
        "task" => Value::Text(Cow::Owned(row.name(scene.snapshot).to_string())),
        "worker" => words(execution.and_then(|execution| execution.worker.as_deref())),
        "run" => Value::number(row.age(scene.snapshot)),
        "limit" => Value::Number(row.limit),
        "gauge" => Value::number(row.age(scene.snapshot).map(|age| age / row.limit.max(f64::MIN_POSITIVE))),
        "next" => Value::number(row.due_in(scene.snapshot)),
        "last" => Value::number(scene.age(row.schedule(scene.snapshot).and_then(|task| task.last_run_at))),
        "pid" => Value::number(row.holder.map(f64::from)),
        "beat" => Value::number(scene.age(execution.and_then(|execution| execution.heartbeat_at))),
        _ => match cell(scene, at, column, u16::MAX) {
            none if none == Cell::none() => Value::Missing,
            cell => Value::Text(Cow::Owned(cell.text)),
        },
    }
}

pub(super) fn id(scene: &Scene<'_>, at: u32) -> Option<RowId> {
    row(scene, at).map(|row| RowId::Task(row.task, row.again))
}
