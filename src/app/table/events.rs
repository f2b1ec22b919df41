//! The columns of the Events screen. What is alike and was seen at once is one line, unless a filter is set.
//!
//! ```text
//!   TIME     SEV  KIND      WHAT                                                                    LENGTH
//!   14:02:31      wait over 4410 deploy@ci got AccessExclusive on accounts                         ≤ 2m51s
//!   14:02:29      wait      17 sessions began to wait for AccessShare on accounts behind 4312            -
//!   13:59:40 warn root      4312 app@web-3 began to block others: idle in transaction, blocks 1          -
//! ```

use std::borrow::Cow;

use super::{Cell, Column, Row, Value};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::Timestamp;
use crate::model::event::{Event, FEW, Length, plural};
use crate::model::finding::Severity;
use crate::text;

pub(super) const COLUMNS: &[Column] = &[
    Column { title: "TIME", name: "time", min: 8, max: 8, right: false, rank: 0 },
    Column { title: "SEV", name: "severity", min: 4, max: 4, right: true, rank: 0 },
    Column { title: "KIND", name: "kind", min: 13, max: 13, right: false, rank: 1 },
    Column { title: "WHAT", name: "what", min: 45, max: 0, right: false, rank: 0 },
    Column { title: "LENGTH", name: "length", min: 8, max: 8, right: true, rank: 0 },
];

/// The newest first. What is alike is folded, where that is wanted.
#[must_use]
pub fn event_rows(scene: &Scene<'_>, folded: bool) -> Vec<Row> {
    let events = &scene.view.events;
    let mut rows = Vec::new();
    let mut run: Vec<&Event> = Vec::new();
    for event in events.iter().rev() {
        if run.last().is_some_and(|last| !folded || !last.is_alike(event)) {
            close(&mut run, &mut rows);
        }
        run.push(event);
    }
    close(&mut run, &mut rows);
    rows
}

fn close(run: &mut Vec<&Event>, rows: &mut Vec<Row>) {
    let first = run.last().filter(|_| run.len() > FEW);
    match first {
        Some(first) => rows.push(Row::Event(first.number, u32::try_from(run.len()).unwrap_or(u32::MAX))),
        None => rows.extend(run.iter().map(|event| Row::Event(event.number, 1))),
    }
    run.clear();
}

/// All events of a line, oldest first.
pub(in crate::app) fn members<'a>(
    scene: &Scene<'a>,
    first: u64,
    count: u32,
) -> impl Iterator<Item = &'a Event> {
    let events = &scene.view.events;
    (first..first.saturating_add(count.into())).filter_map(|number| events.get(number))
}

/// How a severity looks.
pub(in crate::app) fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical => Tone::Critical,
        Severity::Warning => Tone::Warning,
        Severity::Info => Tone::Plain,
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "CRIT",
        Severity::Warning => "warn",
        Severity::Info => "",
    }
}

/// What the filter finds; the worst is the largest.
fn rank(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "!! critical",
        Severity::Warning => "! warning",
        Severity::Info => " info",
    }
}

/// `14:02:31`; `20 14:02` where it is another day.
pub(in crate::app) fn time(scene: &Scene<'_>, at: Timestamp) -> String {
    let day = |at: Timestamp| at.with_timezone(&scene.offset).date_naive();
    if day(at) == day(scene.snapshot.taken_at) {
        scene.time_of_day(at)
    } else {
        at.with_timezone(&scene.offset).format("%d %H:%M").to_string()
    }
}

/// That of the longest.
fn length(scene: &Scene<'_>, event: &Event, count: u32) -> Option<Length> {
    if count < 2 {
        return event.length;
    }
    let lengths = members(scene, event.number, count).filter_map(|event| event.length);
    lengths.max_by(|a, b| a.seconds().total_cmp(&b.seconds()))
}

pub(in crate::app) fn what(event: &Event, count: u32) -> String {
    if count < 2 {
        return event.text();
    }
    format!("{} {} {}", text::count(count.into()), event.kind.noun(), plural(&event.what))
}

pub(super) fn cell(scene: &Scene<'_>, (number, count): (u64, u32), column: &str) -> Cell {
    let Some(event) = scene.view.events.get(number) else { return Cell::none() };
    match column {
        "time" => Cell::toned(time(scene, event.at), Tone::Dim),
        "severity" => Cell::toned(word(event.severity), tone(event.severity)),
        "kind" => Cell::toned(event.kind.as_str(), tone(event.severity)),
        "what" => Cell::plain(what(event, count)),
        "length" => {
            length(scene, event, count).map_or_else(Cell::none, |length| Cell::plain(length.to_string()))
        }
        _ => Cell::none(),
    }
}

pub(super) fn value<'a>(scene: &Scene<'a>, (number, count): (u64, u32), column: &str) -> Value<'a> {
    let Some(event) = scene.view.events.get(number) else { return Value::Missing };
    match column {
        "time" => Value::Text(Cow::Owned(scene.day_and_time(event.at))),
        "severity" => Value::Text(Cow::Borrowed(rank(event.severity))),
        "kind" => Value::Text(Cow::Borrowed(event.kind.as_str())),
        "what" => Value::Text(Cow::Owned(what(event, count))),
        "length" => Value::number(length(scene, event, count).map(Length::seconds)),
        _ => Value::Missing,
    }
}
