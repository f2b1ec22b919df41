//! The columns of the id generators.
//!
//! ```text
//!   WORKER  LAST ID      CLOCK        SEQUENCE TABLE
//!   3       14:07:31     5m00s ahead        17 id_generator
//! ```

use std::borrow::Cow;

use super::{Cell, Column, Row, RowId, Value, fit_names, server_text};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::id_generator::{self, GeneratorRow};
use crate::text;

pub(super) const COLUMNS: &[Column] = &[
    Column { title: "WORKER", name: "worker", min: 7, max: 10, right: false, rank: 0 },
    Column { title: "LAST ID", name: "last", min: 12, max: 14, right: true, rank: 0 },
    Column { title: "AT", name: "at", min: 8, max: 8, right: false, rank: 2 },
    Column { title: "SEQUENCE", name: "sequence", min: 8, max: 8, right: true, rank: 0 },
    Column { title: "TABLE", name: "table", min: 12, max: 0, right: false, rank: 1 },
];

/// All id generators that were read.
#[must_use]
pub fn generator_rows(scene: &Scene<'_>) -> Vec<Row> {
    let tables = (0u32..).zip(&scene.snapshot.systems.generators);
    tables
        .flat_map(|(table, rows)| {
            let count = u32::try_from(rows.section.rows.len()).unwrap_or(u32::MAX);
            (0..count).map(move |at| Row::Generator(table, at))
        })
        .collect()
}

pub(in crate::app) fn row<'a>(scene: &Scene<'a>, table: u32, at: u32) -> Option<GeneratorRow<'a>> {
    id_generator::row(scene.snapshot, table as usize, at as usize)
}

/// `4.0s ago`, `5m00s ahead`: when the last id was made, by its own account.
pub(in crate::app) fn last(row: &GeneratorRow<'_>) -> Cell {
    match row.ahead {
        // A millisecond or two is the time between two looks at one clock.
        Some(ahead) if ahead >= 0.1 => Cell::toned(format!("{} ahead", text::duration(ahead)), Tone::Warning),
        Some(ahead) => Cell::plain(format!("{} ago", text::duration(-ahead))),
        None => Cell::toned("never", Tone::Dim),
    }
}

pub(super) fn cell(scene: &Scene<'_>, (table, at): (u32, u32), column: &str, room: u16) -> Cell {
    let Some(row) = row(scene, table, at) else { return Cell::none() };
    match column {
        "worker" => Cell::plain(row.generator.worker.to_string()),
        "last" => last(&row),
        "at" => {
            match row.generator.last_at().filter(|_| row.ahead.is_some_and(|ahead| ahead.abs() < 86_400.0)) {
                Some(at) => Cell::toned(scene.time_of_day(at), Tone::Dim),
                None => Cell::none(),
            }
        }
        "sequence" => {
            row.generator.sequence.map_or_else(Cell::none, |sequence| Cell::plain(sequence.to_string()))
        }
        "table" => Cell::toned(fit_names(server_text(Some(row.source)).text, room), Tone::Dim),
        _ => Cell::none(),
    }
}

pub(super) fn value<'a>(scene: &Scene<'a>, (table, at): (u32, u32), column: &str) -> Value<'a> {
    let Some(row) = row(scene, table, at) else { return Value::Missing };
    let number = |value: i64| i32::try_from(value).map_or(f64::from(i32::MAX), f64::from);
    match column {
        "worker" => Value::Number(number(row.generator.worker)),
        "last" => Value::number(row.ahead.map(|ahead| -ahead)),
        "sequence" => Value::number(row.generator.sequence.map(number)),
        "table" => Value::Text(Cow::Borrowed(row.source)),
        _ => match cell(scene, (table, at), column, u16::MAX) {
            none if none == Cell::none() => Value::Missing,
            cell => Value::Text(Cow::Owned(cell.text)),
        },
    }
}

pub(super) fn id(scene: &Scene<'_>, table: u32, at: u32) -> Option<RowId> {
    row(scene, table, at).map(|row| RowId::Generator(row.id))
}
