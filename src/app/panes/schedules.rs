//! The schedules of other job systems.
//!
//! ```text
//!   STATE    SOURCE   NAME             SCHEDULE      QUEUE   NEXT     LAST
//!   on       pg_cron  nightly vacuum   0 3 * * *     app        -        -
//! ```

use super::column::{Columns, pane_rows};
use super::definition::{Definition, Read};
use super::facts::{Fact, count, gaps, is_tried, of_source, read_at, source, with_version};
use super::{Cell, Row, RowId, Value};
use crate::app::context::Context;
use crate::app::detail::{ago, field, fields, keep_said, state, words};
use crate::app::line::{Line, Tone};
use crate::model::adapter::{Part, Parts, ScheduleRow, ScheduleState};
use crate::text;

pane_rows! {
    Schedules<'a> = &'a ScheduleRow,
    |context, row| context.view.adapters.schedules.get(row.at()?),
    |row| RowId::Schedule(row.id)
}

static COLUMNS: Columns<Schedules> = Columns {
    shown: &[
        Column::state(
            ("STATE", "state", "on, off; overdue: due for longer than [thresholds] task_overdue"),
            (7, 7),
            |row, _| (row.state.as_str(), tone(row.state)),
        ),
        source(|row, _| Some(&row.source)),
        Column::text(("NAME", "name", "the job it starts"), (16, 0), |row, _| Some(name(row))),
        Column::text(
            ("SCHEDULE", "schedule", "the schedule, as its system writes it"),
            (12, 24),
            |row, _| row.schedule.schedule.as_deref(),
        )
        .rank(1),
        Column::text(("QUEUE", "queue", "its queue, or the database"), (8, 16), |row, _| {
            row.schedule.queue.as_deref()
        })
        .rank(2),
        Column::sorted(
            ("NEXT", "next", "time until it is started next, or since it should have been"),
            (10, 10),
            |row, context, _| next_cell(next(row, context)),
            |row, context| Value::number(next(row, context)),
        )
        .right(),
        Column::age(("LAST", "last", "since it was started last"), (7, 7), Tone::Dim, |row, context| {
            context.age(row.schedule.last_run_at)
        })
        .rank(3),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    is_there: Some(|_, snapshot| is_tried(snapshot, &[Part::Schedules])),
    search: Some(|snapshot| &snapshot.detection.adapters),
    empty: "no schedules",
    parts: Parts::of(&[Part::Schedules]),
    facts: |context, _| facts(context),
    read: |context| Read { at: read_at(context, Part::Schedules), error: None },
    is_state: |word| ScheduleState::named(word).is_some(),
    name: |context, id| of_source("Schedule", of(context, id).map(|row| &row.source)),
    label: |_, _| "a schedule".to_owned(),
    detail: |context, id, _| detail(context, id),
    ..Definition::new(("Schedules", "a schedule"), &COLUMNS, |context, _| {
        Row::all(context.view.adapters.schedules.len())
    })
};

fn of<'a>(context: &Context<'a>, id: RowId) -> Option<&'a ScheduleRow> {
    context.view.adapters.schedules.iter().find(|row| RowId::Schedule(row.id) == id)
}

fn tone(state: ScheduleState) -> Tone {
    match state {
        ScheduleState::Overdue => Tone::Warning,
        ScheduleState::On => Tone::Good,
        ScheduleState::Off => Tone::Dim,
    }
}

fn name(row: &ScheduleRow) -> &str {
    row.schedule.name.as_deref().unwrap_or(&row.schedule.id)
}

/// Seconds until its next run; negative after that.
fn next(row: &ScheduleRow, context: &Context<'_>) -> Option<f64> {
    row.schedule.next_run_at.map(|next| (next - context.snapshot.taken_at).as_seconds_f64())
}

fn next_cell(next: Option<f64>) -> Cell {
    match next {
        Some(left) if left > 0.0 => Cell::plain(format!("in {}", text::duration(left))),
        Some(left) => Cell::toned(format!("{} ago", text::duration(-left)), Tone::Warning),
        None => Cell::none(),
    }
}

fn facts(context: &Context<'_>) -> Vec<Fact> {
    let schedules = &context.view.adapters.schedules;
    let mut facts = vec![(count(schedules.len(), "schedule", "schedules"), Tone::Plain)];
    let overdue = schedules.iter().filter(|row| row.state == ScheduleState::Overdue).count();
    if overdue > 0 {
        facts.push((format!("{overdue} overdue"), Tone::Warning));
    }
    facts.extend(gaps(context, Part::Schedules));
    facts
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = of(context, id)?;
    let schedule = &row.schedule;
    let why = match row.state {
        ScheduleState::Overdue => ": its time has passed, and it was not started",
        ScheduleState::On | ScheduleState::Off => "",
    };
    let mut lines = vec![
        state(row.state.as_str(), tone(row.state), why),
        field("starts", text::one_line(name(row)), Tone::Plain),
        field("id", text::one_line(&schedule.id), Tone::Plain),
        field("kept in", with_version(context, row.place.0), Tone::Plain),
        field("schedule", words(schedule.schedule.as_ref()), Tone::Plain),
        field("queue", words(schedule.queue.as_ref()), Tone::Plain),
        fields(&[
            ("next", next(row, context).map(|left| next_cell(Some(left)).text).unwrap_or_default()),
            ("last", ago(context, schedule.last_run_at)),
        ]),
    ];
    keep_said(&mut lines);
    Some(lines)
}
