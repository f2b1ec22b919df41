//! The columns of the Leases screen, and of the Overview's pane.
//!
//! ```text
//!   STATE    LEASE    OWNER         LEFT OF TERM       TOKEN RENEWED  TERM WAITERS SOURCE
//!   expired  7        node1      41s ago ░░░░░░░░   0%    12   1m01s   20s       - distlock
//!   held     1        node2          12s █████░░░  61%     4    8.0s   20s       - distlock
//!   held     lock:job worker-1       12s -                -       -      -       - 3/5 redis
//! ```

use std::borrow::Cow;

use super::{Cell, Column, Row, RowId, Value, age, bar, fit_names, server_text};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::lease::{LeaseRow, LeaseState};
use crate::text;

pub(super) const COLUMNS: &[Column] = &[
    Column { title: "STATE", name: "state", min: 8, max: 8, right: false, rank: 0 },
    Column { title: "LEASE", name: "lease", min: 8, max: 30, right: false, rank: 0 },
    Column { title: "OWNER", name: "owner", min: 10, max: 30, right: false, rank: 0 },
    Column { title: "LEFT", name: "left", min: 10, max: 10, right: true, rank: 0 },
    Column { title: "OF TERM", name: "gauge", min: 14, max: 22, right: false, rank: 1 },
    Column { title: "TOKEN", name: "token", min: 5, max: 10, right: true, rank: 0 },
    Column { title: "RENEWED", name: "renewed", min: 7, max: 7, right: true, rank: 4 },
    Column { title: "TERM", name: "term", min: 6, max: 6, right: true, rank: 3 },
    Column { title: "WAITERS", name: "waiters", min: 7, max: 7, right: true, rank: 2 },
    Column { title: "ALIVE", name: "alive", min: 5, max: 5, right: false, rank: 6 },
    Column { title: "HELD", name: "held", min: 6, max: 6, right: true, rank: 5 },
    Column { title: "SOURCE", name: "source", min: 9, max: 0, right: false, rank: 0 },
];

/// All leases.
#[must_use]
pub fn lease_rows(scene: &Scene<'_>) -> Vec<Row> {
    (0..u32::try_from(scene.view.leases.rows.len()).unwrap_or(u32::MAX)).map(Row::Lease).collect()
}

fn row<'a>(scene: &Scene<'a>, at: u32) -> Option<&'a LeaseRow> {
    scene.view.leases.rows.get(at as usize)
}

/// How a state looks.
pub(in crate::app) fn tone(state: LeaseState) -> Tone {
    match state {
        LeaseState::Expired => Tone::Warning,
        LeaseState::Held => Tone::Good,
        LeaseState::Released | LeaseState::Free => Tone::Dim,
    }
}

/// Whether somebody has it, or still stands there as its owner.
fn is_owned(row: &LeaseRow) -> bool {
    matches!(row.state, LeaseState::Held | LeaseState::Expired)
}

/// `12s`, `41s ago`; `no end` for one that nobody else will ever get.
fn left(row: &LeaseRow) -> Cell {
    match row.left {
        _ if !is_owned(row) => Cell::none(),
        Some(seconds) if seconds > 0.0 => Cell::plain(text::duration(seconds)),
        Some(seconds) => Cell::toned(format!("{} ago", text::duration(-seconds)), Tone::Warning),
        None => Cell::toned("no end", Tone::Warning),
    }
}

/// The share of its term that a lease still has.
fn share(row: &LeaseRow) -> Option<f64> {
    let (left, term) = row.left.zip(row.term.filter(|term| *term > 0.0))?;
    is_owned(row).then(|| (left / term).clamp(0.0, 1.0))
}

/// `█████░░░  61%`: what is left of the term.
fn gauge(row: &LeaseRow, room: u16) -> Cell {
    let Some(share) = share(row) else { return Cell::none() };
    let tone = if share < 0.2 { Tone::Warning } else { Tone::Plain };
    Cell::toned(bar(share, room), tone)
}

fn alive(row: &LeaseRow) -> Cell {
    match row.owner_alive {
        Some(true) => Cell::toned("yes", Tone::Good),
        Some(false) => Cell::toned("gone", Tone::Warning),
        None if is_owned(row) => Cell::toned("?", Tone::Dim),
        None => Cell::none(),
    }
}

/// The state; `split` where several owners have it on different servers.
fn state(row: &LeaseRow) -> Cell {
    if row.is_split {
        return Cell::toned("split", Tone::Warning);
    }
    Cell::toned(row.state.as_str(), tone(row.state))
}

/// Where it is kept; `3/5 redis`: its owner has it on so many of the servers.
fn source(row: &LeaseRow) -> Cow<'_, str> {
    match row.quorum {
        Some((has, of)) => Cow::Owned(format!("{has}/{of} {}", row.shown_source())),
        None => row.shown_source(),
    }
}

pub(super) fn cell(scene: &Scene<'_>, at: u32, column: &str, room: u16) -> Cell {
    let Some(row) = row(scene, at) else { return Cell::none() };
    match column {
        "state" => state(row),
        "lease" => server_text(Some(&row.name)),
        "owner" => server_text(row.owner.as_deref()),
        "left" => left(row),
        "gauge" => gauge(row, room),
        "token" => row.token.map_or_else(Cell::none, |token| Cell::plain(token.to_string())),
        "renewed" => age(scene.age(row.renewed_at), Tone::Dim),
        "term" => age(row.term, Tone::Dim),
        "waiters" if row.waiting > 0 => Cell::toned(row.waiting.to_string(), Tone::Warning),
        "alive" => alive(row),
        "held" if is_owned(row) => age(scene.age(row.acquired_at), Tone::Plain),
        "source" => Cell::toned(fit_names(server_text(Some(&source(row))).text, room), Tone::Dim),
        _ => Cell::none(),
    }
}

pub(super) fn value<'a>(scene: &Scene<'a>, at: u32, column: &str) -> Value<'a> {
    let Some(row) = row(scene, at) else { return Value::Missing };
    let words = |text: Option<&'a str>| text.map_or(Value::Missing, |text| Value::Text(Cow::Borrowed(text)));
    match column {
        "state" => Value::state(state(row).text),
        "lease" => match row.name.parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Number(number),
            _ => words(Some(&row.name)),
        },
        "owner" => words(row.owner.as_deref()),
        "left" => Value::number(row.left.filter(|_| is_owned(row))),
        "gauge" => Value::number(share(row)),
        "renewed" => Value::number(scene.age(row.renewed_at)),
        "term" => Value::number(row.term),
        "held" => Value::number(scene.age(row.acquired_at).filter(|_| is_owned(row))),
        "waiters" => Value::Number(f64::from(row.waiting)),
        "source" => Value::Text(source(row)),
        "token" => match row.token.map(|token| i32::try_from(token).map(f64::from)) {
            Some(Ok(token)) => Value::Number(token),
            Some(Err(_)) => Value::Text(Cow::Owned(row.token.unwrap_or_default().to_string())),
            None => Value::Missing,
        },
        _ => match cell(scene, at, column, u16::MAX) {
            none if none == Cell::none() => Value::Missing,
            cell => Value::Text(Cow::Owned(cell.text)),
        },
    }
}

pub(super) fn id(scene: &Scene<'_>, at: u32) -> Option<RowId> {
    row(scene, at).map(|row| RowId::Lease(row.id))
}
