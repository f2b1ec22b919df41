//! The schedules of other job systems.
//!
//! ```text
//!   STATE    SOURCE   NAME             SCHEDULE      QUEUE   NEXT     LAST
//!   on       pg_cron  nightly vacuum   0 3 * * *     app        -        -
//! ```

use super::column::{Columns, pane_rows};
use super::definition::{Definition, Read};
use super::facts::{Fact, count, gaps, read_at, source, with_version};
use super::{Cell, Row, RowId, Value};
use crate::app::context::Context;
use crate::app::detail::{ago, field, fields, keep_said, state, words};
use crate::app::line::{Line, Tone};
use crate::model::adapter::{AdapterSchedule, Part, Parts, ScheduleRow, ScheduleState};
use crate::text;

#[derive(Clone, Copy)]
struct Seen<'a> {
    row: &'a ScheduleRow,
    schedule: &'a AdapterSchedule,
}

pane_rows! {
    Schedules<'a> = Seen<'a>,
    |context, row| seen(context, context.view.adapters.schedules.get(row.at()?)?),
    |seen| RowId::Schedule(seen.row.id)
}

fn seen<'a>(context: &Context<'a>, row: &'a ScheduleRow) -> Option<Seen<'a>> {
    let (place, at) = row.place;
    let schedule = context.snapshot.adapters.get(place)?.schedules.section.last_rows().get(at)?;
    Some(Seen { row, schedule })
}

static COLUMNS: Columns<Schedules> = Columns {
    shown: &[
        Column::state(
            ("STATE", "state", "on, off; overdue: due for longer than [thresholds] task_overdue"),
            (7, 7),
            |seen, _| (seen.row.state.as_str(), tone(seen.row.state)),
        ),
        source(|seen, _| Some(&seen.row.source)),
        Column::text(("NAME", "name", "the job it starts"), (16, 0), |seen, _| Some(name(&seen))),
        Column::text(
            ("SCHEDULE", "schedule", "the schedule, as its system writes it"),
            (12, 24),
            |seen, _| seen.schedule.schedule.as_deref(),
        )
        .rank(1),
        Column::text(("QUEUE", "queue", "its queue, or the database"), (8, 16), |seen, _| {
            seen.schedule.queue.as_deref()
        })
        .rank(2),
        Column::sorted(
            ("NEXT", "next", "time until it is started next, or since it should have been"),
            (10, 10),
            |seen, context, _| next_cell(next(&seen, context)),
            |seen, context| Value::number(next(&seen, context)),
        )
        .right(),
        Column::age(("LAST", "last", "since it was started last"), (7, 7), Tone::Dim, |seen, context| {
            context.age(seen.schedule.last_run_at)
        })
        .rank(3),
    ],
    others: &[],
};

pub(super) static PANE: Definition = Definition {
    is_there: |has| has.schedules,
    search: Some(|snapshot| &snapshot.detection.adapters),
    empty: "no schedules",
    parts: Parts::of(&[Part::Schedules]),
    facts: |context, _| facts(context),
    read: |context| Read { at: read_at(context, |rows| &rows.schedules), error: None },
    is_state: |word| ScheduleState::named(word).is_some(),
    name: |context, id| match of(context, id) {
        Some(seen) => format!("Schedule of {}", text::one_line(&seen.row.source)),
        None => "Schedule".to_owned(),
    },
    label: |_, _| "a schedule".to_owned(),
    detail: |context, id, _| detail(context, id),
    ..Definition::new(("Schedules", "a schedule"), &COLUMNS, |context, _| {
        Row::all(context.view.adapters.schedules.len())
    })
};

fn of<'a>(context: &Context<'a>, id: RowId) -> Option<Seen<'a>> {
    let RowId::Schedule(id) = id else { return None };
    seen(context, context.view.adapters.schedules.iter().find(|row| row.id == id)?)
}

fn tone(state: ScheduleState) -> Tone {
    match state {
        ScheduleState::Overdue => Tone::Warning,
        ScheduleState::On => Tone::Good,
        ScheduleState::Off => Tone::Dim,
    }
}

fn name<'a>(seen: &Seen<'a>) -> &'a str {
    seen.schedule.name.as_deref().unwrap_or(&seen.schedule.id)
}

/// Seconds until its next run; negative after that.
fn next(seen: &Seen<'_>, context: &Context<'_>) -> Option<f64> {
    seen.schedule.next_run_at.map(|next| (next - context.snapshot.taken_at).as_seconds_f64())
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
    facts.extend(gaps(context, |rows| &rows.schedules));
    facts
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let seen = of(context, id)?;
    let Seen { row, schedule } = seen;
    let why = match row.state {
        ScheduleState::Overdue => ": its time has passed, and it was not started",
        ScheduleState::On | ScheduleState::Off => "",
    };
    let mut lines = vec![
        state(row.state.as_str(), tone(row.state), why),
        field("starts", text::one_line(name(&seen)), Tone::Plain),
        field("id", text::one_line(&schedule.id), Tone::Plain),
        field("kept in", with_version(context, row.place.0), Tone::Plain),
        field("schedule", words(schedule.schedule.as_ref()), Tone::Plain),
        field("queue", words(schedule.queue.as_ref()), Tone::Plain),
        fields(&[
            ("next", next(&seen, context).map(|left| next_cell(Some(left)).text).unwrap_or_default()),
            ("last", ago(context, schedule.last_run_at)),
        ]),
    ];
    keep_said(&mut lines);
    Some(lines)
}
