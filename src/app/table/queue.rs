//! The columns of the work queue: its items that somebody should see.
//!
//! ```text
//!   STATE    ITEM     NAME            WORKER       RUN   BEAT   TRY PID         IN  WHAT
//!   lost     41207    邮件发送        worker-3   4m10s  4m10s   1/3 -        4m40s
//!   running  41211    resize images   worker-1     42s   1.0s   1/3 6101     1m12s
//! ```

use std::borrow::Cow;

use super::{Cell, Column, Row, RowId, Value, age, fit_names, server_text, worker};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::work_queue::{Item, ItemRow, ItemState};

pub(super) const COLUMNS: &[Column] = &[
    Column { title: "STATE", name: "state", min: 8, max: 8, right: false, rank: 0 },
    Column { title: "ITEM", name: "item", min: 8, max: 12, right: false, rank: 0 },
    Column { title: "NAME", name: "name", min: 13, max: 32, right: false, rank: 0 },
    Column { title: "WORKER", name: "worker", min: 11, max: 24, right: false, rank: 0 },
    Column { title: "RUN", name: "run", min: 6, max: 6, right: true, rank: 0 },
    Column { title: "BEAT", name: "beat", min: 6, max: 6, right: true, rank: 1 },
    Column { title: "TRY", name: "try", min: 4, max: 5, right: true, rank: 0 },
    Column { title: "PID", name: "pid", min: 7, max: 8, right: false, rank: 0 },
    Column { title: "DUE", name: "due", min: 6, max: 6, right: true, rank: 2 },
    Column { title: "AGE", name: "age", min: 6, max: 6, right: true, rank: 0 },
    Column { title: "ENDED", name: "ended", min: 6, max: 6, right: true, rank: 4 },
    Column { title: "TABLE", name: "table", min: 14, max: 24, right: false, rank: 5 },
    Column { title: "ERROR", name: "error", min: 12, max: 0, right: false, rank: 3 },
];

/// The items that were read.
#[must_use]
pub fn item_rows(scene: &Scene<'_>) -> Vec<Row> {
    (0..u32::try_from(scene.view.queue.rows.len()).unwrap_or(u32::MAX)).map(Row::Item).collect()
}

fn row<'a>(scene: &Scene<'a>, at: u32) -> Option<(&'a ItemRow, &'a Item)> {
    let row = scene.view.queue.rows.get(at as usize)?;
    Some((row, row.item(scene.snapshot)?))
}

/// How a state looks.
pub(in crate::app) fn tone(state: ItemState) -> Tone {
    match state {
        ItemState::Lost => Tone::Critical,
        ItemState::MaybeLost
        | ItemState::Slow
        | ItemState::MaybeSlow
        | ItemState::Unknown
        | ItemState::Settling
        | ItemState::Failed => Tone::Warning,
        ItemState::Running | ItemState::MaybeRunning => Tone::Good,
        ItemState::Pending => Tone::Plain,
        ItemState::Resting => Tone::Dim,
    }
}

/// `2/3`: how often it was taken, and may be.
fn attempts(item: &Item) -> Option<String> {
    match (item.attempt?, item.max_attempts) {
        (attempt, Some(most)) => Some(format!("{attempt}/{most}")),
        (attempt, None) => Some(attempt.to_string()),
    }
}

/// The last sign of life of a worker, in seconds before now.
fn beat(scene: &Scene<'_>, item: &Item) -> Option<f64> {
    scene.age(item.heartbeat_at.filter(|_| item.is_processing()))
}

fn ended(scene: &Scene<'_>, item: &Item) -> Option<f64> {
    scene.age(item.completed_at.filter(|_| !item.is_processing()))
}

pub(super) fn cell(scene: &Scene<'_>, at: u32, column: &str, room: u16) -> Cell {
    let Some((row, item)) = row(scene, at) else { return Cell::none() };
    match column {
        "state" => Cell::toned(row.state.as_str(), tone(row.state)),
        "item" => Cell::plain(item.id.to_string()),
        "name" => server_text(item.name.as_deref()),
        "worker" => worker(item.worker.as_deref(), room),
        "run" => age(row.run(scene.snapshot), Tone::Plain),
        "beat" => age(beat(scene, item), Tone::Dim),
        "try" => attempts(item).map_or_else(Cell::none, Cell::plain),
        "pid" => row.pid.map_or_else(Cell::none, |pid| Cell::plain(pid.to_string())),
        "due" => age(row.due_in(scene.snapshot), Tone::Plain),
        "age" => age(scene.age(item.created_at), Tone::Dim),
        "ended" => age(ended(scene, item), Tone::Dim),
        "error" => match server_text(item.error.as_deref().filter(|error| !error.is_empty())) {
            none if none == Cell::none() => none,
            text => Cell { tone: Tone::Warning, ..text },
        },
        "table" => {
            let name = server_text(row.source(scene.snapshot).map(|name| &**name)).text;
            Cell::toned(fit_names(name, room), Tone::Dim)
        }
        _ => Cell::none(),
    }
}

pub(super) fn value<'a>(scene: &Scene<'a>, at: u32, column: &str) -> Value<'a> {
    let Some((row, item)) = row(scene, at) else { return Value::Missing };
    let words = |text: Option<&'a str>| text.map_or(Value::Missing, |text| Value::Text(Cow::Borrowed(text)));
    match column {
        "state" => Value::state(row.state.as_str()),
        "name" => words(item.name.as_deref()),
        "worker" => words(item.worker.as_deref()),
        "run" => Value::number(row.run(scene.snapshot)),
        "beat" => Value::number(beat(scene, item)),
        "pid" => Value::number(row.pid.map(f64::from)),
        "due" => Value::number(row.due_in(scene.snapshot)),
        "age" => Value::number(scene.age(item.created_at)),
        "ended" => Value::number(ended(scene, item)),
        "error" => words(item.error.as_deref()),
        "item" => match i32::try_from(item.id) {
            Ok(id) => Value::Number(f64::from(id)),
            Err(_) => Value::Text(Cow::Owned(item.id.to_string())),
        },
        _ => match cell(scene, at, column, u16::MAX) {
            none if none == Cell::none() => Value::Missing,
            cell => Value::Text(Cow::Owned(cell.text)),
        },
    }
}

pub(super) fn id(scene: &Scene<'_>, at: u32) -> Option<RowId> {
    scene.view.queue.rows.get(at as usize).map(|row| RowId::Item(row.id))
}
