//! The id generators.

use super::column::pane_rows;
use super::definition::{Fact, PaneDefinition, ReadState, cut, rows, stale_tables, taken};
use super::limits::thousandths;
use super::{Cell, Row, RowId, Rows, SortValue};
use crate::app::context::Context;
use crate::app::detail::{field, fields, number};
use crate::app::line::{Line, Tone};
use crate::model::id_generator::{self, GeneratorRow};
use crate::order::SortExt;
use crate::text;

pane_rows! {
    Generators<'a> = GeneratorRow<'a>,
    |context, row| {
        let (table, at) = row.within()?;
        id_generator::row(context.snapshot, table, at)
    },
    |row| RowId::Generator(row.id)
}

static COLUMNS: &[Column] = &[
    Column::number(
        ("WORKER", "worker", "number of the worker that the ids belong to"),
        (7, 10),
        Tone::Plain,
        |row, _| Some(row.generator.worker),
    )
    .left(),
    Column::sorted(
        ("LAST ID", "last", "the last id it generated"),
        (12, 14),
        |row, _, _| last(&row),
        |row, _| SortValue::number(row.ahead.map(|ahead| -ahead)),
    )
    .right(),
    Column::cell(
        ("AT", "at", "the time in that id, compared with the server's clock"),
        (8, 8),
        |row, context, _| at(context, &row),
    )
    .rank(2),
    Column::number(
        ("SEQUENCE", "sequence", "its number within that millisecond"),
        (8, 8),
        Tone::Plain,
        |row, _| row.generator.sequence,
    ),
    Column::table((12, 0), |row, _| Some(row.source)).rank(1),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    order: |context, rows| {
        rows.order_by_cached_key(|row| Generators::get(context, *row).map(|row| urgency(&row)));
    },
    is_there: Some(|_, snapshot| !snapshot.sources.generators.is_empty()),
    empty: "no id generators",
    facts: |context, _| facts(context),
    read: |context| ReadState { at: taken(&context.snapshot.sources.generators), error: None },
    name: |_, id| numbered("Id generator", id),
    label: |_, id| numbered("id generator", id),
    detail: |context, id, _| detail(context, id),
    ..PaneDefinition::new(("Id generators", "an id generator"), &COLUMNS, |context, _| {
        Row::all_of(context.snapshot.sources.generators.iter().map(|rows| rows.section.last_rows().len()))
    })
};

fn facts(context: &Context<'_>) -> Vec<Fact> {
    let tables = &context.snapshot.sources.generators;
    let mut facts = stale_tables(context, tables);
    facts.push((rows(tables, "worker", "workers"), Tone::Plain));
    facts.extend(cut(tables));
    facts
}

/// Generators ahead of the clock first, then the latest id first.
fn urgency(row: &GeneratorRow<'_>) -> (i64, i64) {
    let ahead = row.ahead.filter(|ahead| *ahead > 0.1).map_or(0, thousandths);
    (ahead.saturating_neg(), row.generator.worker)
}

/// The time of day of the last id; empty if it is days away.
fn at(context: &Context<'_>, row: &GeneratorRow<'_>) -> Cell {
    let is_near = row.ahead.is_some_and(|ahead| ahead.abs() < 86_400.0);
    let at = row.generator.last_at().filter(|_| is_near);
    at.map_or_else(Cell::none, |at| Cell::toned(context.time_of_day(at), Tone::Dim))
}

/// `4.0s ago`, `5m00s ahead`: when the last id was generated, according to the id itself.
pub(in crate::app) fn last(row: &GeneratorRow<'_>) -> Cell {
    match row.ahead {
        // One or two milliseconds are the time between two reads of the same clock.
        Some(ahead) if ahead >= 0.1 => Cell::toned(format!("{} ahead", text::duration(ahead)), Tone::Warning),
        Some(ahead) => Cell::plain(format!("{} ago", text::duration(-ahead))),
        None => Cell::toned("never", Tone::Dim),
    }
}

fn numbered(what: &str, id: RowId) -> String {
    if let RowId::Generator(id) = id { format!("{what} {}", id.worker) } else { String::new() }
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = id_generator::rows(context.snapshot).find(|row| RowId::Generator(row.id) == id)?;
    let last = last(&row);
    Some(vec![
        field("last id", last.text, last.tone),
        field("kept in", text::one_line(row.source), Tone::Plain),
        fields(&[
            ("sequence", number(row.generator.sequence)),
            ("of", "4095".to_owned()),
            ("last_timestamp", number(row.generator.last_timestamp)),
        ]),
        Line::new(),
        Line::new().with(
            "  An id contains the milliseconds since 2021-01-01. While a generator is ahead of the server's clock, its ids wait for the clock, or repeat.",
            Tone::Dim,
        ),
    ])
}
