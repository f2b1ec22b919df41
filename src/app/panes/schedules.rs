//! The schedules of other job systems.

use super::column::{Listed, listed_rows};
use super::definition::{
    Fact, PaneDefinition, ReadState, count, gaps, is_tried, of_source, read_at, source, with_version,
};
use super::{Cell, RowId};
use crate::app::context::Context;
use crate::app::detail::{ago, drop_empty, field, fields, in_or_ago, state, words};
use crate::app::line::{Line, Tone};
use crate::model::adapter::{Part, Parts, ScheduleRow, ScheduleState};
use crate::text;

listed_rows!(Schedules = ScheduleRow, |context| &context.view.adapters.schedules, |row| RowId::Schedule(
    row.id
));

static COLUMNS: &[Column] = &[
    Column::state("on, off; overdue: due for longer than [thresholds] task_overdue", 7, |row, _| {
        (row.state.as_str(), tone(row.state))
    }),
    source(|row, _| Some(&row.source)),
    Column::text(("NAME", "name", "the job it starts"), (16, 0), |row, _| Some(name(row))),
    Column::text(("SCHEDULE", "schedule", "the schedule, as its system writes it"), (12, 24), |row, _| {
        row.schedule.schedule.as_deref()
    })
    .rank(1),
    Column::text(("QUEUE", "queue", "its queue, or the database"), (8, 16), |row, _| {
        row.schedule.queue.as_deref()
    })
    .rank(2),
    Column::measure(
        ("NEXT", "next", "time until it is started next, or since it should have been"),
        (10, 10),
        |row, context| Some(context.until(row.schedule.next_run_at?)),
        |left, _| next(left),
    ),
    Column::since(("LAST", "last", "since it was started last"), (7, 7), Tone::Dim, |row, _| {
        row.schedule.last_run_at
    })
    .rank(3),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    is_there: Some(|_, snapshot| is_tried(snapshot, &[Part::Schedules])),
    empty: "no schedules",
    parts: Parts::of(&[Part::Schedules]),
    facts: |context, _| facts(context),
    read: |context| ReadState { at: read_at(context, Part::Schedules), error: None },
    is_state: |word| ScheduleState::named(word).is_some(),
    name: |context, id| of_source("Schedule", Schedules::find(context, id).map(|row| &row.source)),
    label: |_, _| "a schedule".to_owned(),
    detail: |context, id, _| detail(context, id),
    ..PaneDefinition::new(("Schedules", "a schedule"), &COLUMNS, Schedules::rows)
};

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

/// By the seconds until its next run; negative after that.
fn next(left: f64) -> Cell {
    Cell::toned(in_or_ago(left), if left > 0.0 { Tone::Plain } else { Tone::Warning })
}

fn facts(context: &Context<'_>) -> Vec<Fact> {
    let schedules = &context.view.adapters.schedules;
    let mut facts = vec![(count(schedules.len(), "schedule", "schedules"), Tone::Plain)];
    let overdue = schedules.iter().filter(|row| row.state == ScheduleState::Overdue).count();
    facts.extend((overdue > 0).then(|| (format!("{overdue} overdue"), Tone::Warning)));
    facts.extend(gaps(context, Part::Schedules));
    facts
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = Schedules::find(context, id)?;
    let schedule = &row.schedule;
    let why = match row.state {
        ScheduleState::Overdue => ": its time has passed, and it was not started",
        ScheduleState::On | ScheduleState::Off => "",
    };
    let mut lines = vec![
        state((row.state.as_str(), tone(row.state)), why),
        field("starts", text::one_line(name(row)), Tone::Plain),
        field("id", text::one_line(&schedule.id), Tone::Plain),
        field("kept in", with_version(context, row.place.0), Tone::Plain),
        field("schedule", words(schedule.schedule.as_ref()), Tone::Plain),
        field("queue", words(schedule.queue.as_ref()), Tone::Plain),
        fields(&[
            ("next", schedule.next_run_at.map(|at| in_or_ago(context.until(at))).unwrap_or_default()),
            ("last", ago(context, schedule.last_run_at)),
        ]),
    ];
    drop_empty(&mut lines);
    Some(lines)
}
