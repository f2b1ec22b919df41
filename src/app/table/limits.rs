//! The columns of the rate limits.
//!
//! ```text
//!   STATE   KEY             COUNT  LIMIT OF LIMIT         ENDS IN  WINDOW TABLE
//!   full    user:123:api      100    100 ████████ 100%        12s     48s rate_limit
//! ```

use std::borrow::Cow;

use super::{Cell, Column, Row, RowId, Value, age, bar, fit_names, server_text};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::rate_limit::{self, LimitRow, LimitState};
use crate::text;

pub(super) const COLUMNS: &[Column] = &[
    Column { title: "STATE", name: "state", min: 7, max: 7, right: false, rank: 0 },
    Column { title: "KEY", name: "key", min: 14, max: 40, right: false, rank: 0 },
    Column { title: "COUNT", name: "count", min: 6, max: 9, right: true, rank: 0 },
    Column { title: "LIMIT", name: "limit", min: 6, max: 9, right: true, rank: 0 },
    Column { title: "OF LIMIT", name: "gauge", min: 14, max: 22, right: false, rank: 1 },
    Column { title: "ENDS", name: "ends", min: 6, max: 6, right: true, rank: 0 },
    Column { title: "BEGAN", name: "began", min: 6, max: 6, right: true, rank: 2 },
    Column { title: "TABLE", name: "table", min: 10, max: 0, right: false, rank: 3 },
];

/// All rate limits that were read: the place of each in [`rate_limit::rows`].
#[must_use]
pub fn limit_rows(scene: &Scene<'_>) -> Vec<Row> {
    let tables = (0u32..).zip(&scene.snapshot.systems.limits);
    tables
        .flat_map(|(table, rows)| {
            let count = u32::try_from(rows.section.rows.len()).unwrap_or(u32::MAX);
            (0..count).map(move |at| Row::Limit(table, at))
        })
        .collect()
}

pub(in crate::app) fn row<'a>(scene: &Scene<'a>, table: u32, at: u32) -> Option<LimitRow<'a>> {
    rate_limit::row(scene.snapshot, table as usize, at as usize)
}

/// How a state looks.
pub(in crate::app) fn tone(state: LimitState) -> Tone {
    match state {
        LimitState::Full | LimitState::Near => Tone::Warning,
        LimitState::Open => Tone::Good,
        LimitState::Unknown => Tone::Plain,
        LimitState::Over => Tone::Dim,
    }
}

fn is_live(row: &LimitRow<'_>) -> bool {
    row.state != LimitState::Over
}

fn ends(scene: &Scene<'_>, row: &LimitRow<'_>) -> Option<f64> {
    row.limit.expires_at.map(|end| (end - scene.snapshot.taken_at).as_seconds_f64())
}

pub(super) fn cell(scene: &Scene<'_>, (table, at): (u32, u32), column: &str, room: u16) -> Cell {
    let Some(row) = row(scene, table, at) else { return Cell::none() };
    let number = |value: Option<i64>| {
        let count = value.map(|value| text::count(u64::try_from(value).unwrap_or_default()));
        count.map_or_else(Cell::none, Cell::plain)
    };
    match column {
        "state" => Cell::toned(row.state.as_str(), tone(row.state)),
        "key" => server_text(Some(&row.limit.key)),
        "count" => number(row.limit.count),
        "limit" => number(row.limit.max_requests),
        "gauge" => match row.limit.share().filter(|_| is_live(&row)) {
            Some(share) => {
                Cell::toned(bar(share, room), if share >= 1.0 { Tone::Warning } else { Tone::Plain })
            }
            None => Cell::none(),
        },
        "ends" => match ends(scene, &row) {
            Some(left) if left > 0.0 => Cell::plain(text::duration(left)),
            Some(_) => Cell::toned("over", Tone::Dim),
            None => Cell::none(),
        },
        "began" => age(scene.age(row.limit.window_start), Tone::Dim),
        "table" => Cell::toned(fit_names(server_text(Some(row.source)).text, room), Tone::Dim),
        _ => Cell::none(),
    }
}

pub(super) fn value<'a>(scene: &Scene<'a>, (table, at): (u32, u32), column: &str) -> Value<'a> {
    let Some(row) = row(scene, table, at) else { return Value::Missing };
    let number = |value: Option<i64>| {
        Value::number(value.map(|value| i32::try_from(value).map_or(f64::from(i32::MAX), f64::from)))
    };
    match column {
        "state" => Value::state(row.state.as_str()),
        "key" => Value::Text(Cow::Borrowed(&row.limit.key)),
        "count" => number(row.limit.count),
        "limit" => number(row.limit.max_requests),
        "gauge" => Value::number(row.limit.share().filter(|_| is_live(&row))),
        "ends" => Value::number(ends(scene, &row)),
        "began" => Value::number(scene.age(row.limit.window_start)),
        "table" => Value::Text(Cow::Borrowed(row.source)),
        _ => match cell(scene, (table, at), column, u16::MAX) {
            none if none == Cell::none() => Value::Missing,
            cell => Value::Text(Cow::Owned(cell.text)),
        },
    }
}

pub(super) fn id(scene: &Scene<'_>, table: u32, at: u32) -> Option<RowId> {
    row(scene, table, at).map(|row| RowId::Limit(row.id))
}
