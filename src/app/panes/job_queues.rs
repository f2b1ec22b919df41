//! The queues of other job systems.
//!
//! ```text
//!   STATE     SOURCE       QUEUE       DUE  OLDEST  RUN  LATER  RETRY  BLOCKED  FAILED     DONE
//!   unserved  Solid Queue  billing    1.2k   12m4s    0      -      -        -       -        -
//! ```

use super::column::{Listed, listed_rows};
use super::definition::{
    Fact, PaneDefinition, ReadState, count, gaps, is_tried, of_source, read_at, source, with_version,
};
use super::{Cell, Row, RowId, SortValue};
use crate::app::context::Context;
use crate::app::detail::{ago, field, fields, state};
use crate::app::line::{Line, Tone};
use crate::model::adapter::{Part, Parts, QueueRow, QueueState};
use crate::text;

listed_rows!(Queues = QueueRow, |context| &context.view.adapters.queues, |row| RowId::JobQueue(row.id));

/// A column of jobs in one state.
macro_rules! jobs {
    ($title:literal, $word:literal, $help:literal, $width:expr) => {
        Column::sorted(
            ($title, $word, $help),
            $width,
            |row, _, _| number(row, $word),
            |row, _| value(row, $word),
        )
        .right()
    };
}

static COLUMNS: &[Column] = &[
    Column::state(
        "unserved: jobs are due, but no worker is alive or connected; overdue: longer than [thresholds] task_overdue",
        8,
        |row, _| (row.state.as_str(), tone(row.state)),
    ),
    // Many systems have queues with the same name.
    source::<Queues>(|row, _| Some(&row.source)).rank(0),
    Column::text(("QUEUE", "queue", "its name; (all): all queues together"), (10, 0), |row, _| {
        Some(row.queue.as_deref().unwrap_or(ALL))
    }),
    jobs!("DUE", "due", "due jobs; 10,000+: not counted further; ~: estimated by the planner", (7, 8)),
    Column::age(
        ("OLDEST", "oldest", "how long the oldest due job that was read has been due"),
        (7, 7),
        Tone::Plain,
        |row, context| context.age(row.oldest_at).filter(|age| *age > 0.0),
    ),
    jobs!("RUN", "running", "running jobs", (7, 8)),
    jobs!("LATER", "scheduled", "jobs that are not due yet", (7, 8)).rank(3),
    jobs!("RETRY", "retry", "failed jobs that will be retried", (7, 8)).rank(4),
    jobs!("BLOCKED", "blocked", "jobs that wait for another job", (7, 8)).rank(5).only_where(|context| {
        context.view.adapters.queues.iter().any(|row| row.counts.contains_key("blocked"))
    }),
    jobs!("FAILED", "failed", "jobs that failed for good", (7, 8)).rank(2),
    jobs!("DONE", "done", "rows of its table, mostly of finished jobs", (9, 13)).rank(6),
    Column::since(("PAUSED", "paused", "since it was paused"), (7, 7), Tone::Dim, |row, _| row.paused_at)
        .rank(7)
        .only_where(|context| context.view.adapters.queues.iter().any(|row| row.paused_at.is_some())),
];

/// Shown instead of a name for all queues together.
const ALL: &str = "(all)";

pub(super) static PANE: PaneDefinition = PaneDefinition {
    is_there: Some(|_, snapshot| is_tried(snapshot, &[Part::Depth, Part::Paused])),
    empty: "no jobs in any queue",
    parts: Parts::of(&[Part::Depth, Part::Paused, Part::Due, Part::Running, Part::Workers]),
    facts: |context, _| facts(context),
    read: |context| ReadState { at: read_at(context, Part::Depth), error: None },
    is_state: |word| QueueState::named(word).is_some(),
    name: |context, id| of_source("Queue", Queues::find(context, id).map(|row| &row.source)),
    label: |_, _| "a queue".to_owned(),
    detail: |context, id, _| detail(context, id),
    ..PaneDefinition::new(("Job queues", "a queue"), &COLUMNS, |context, _| {
        let rows = context.view.adapters.queues.iter().zip(Row::all(context.view.adapters.queues.len()));
        rows.filter(|(row, _)| is_worth_a_line(row)).map(|(_, row)| row).collect()
    })
};

/// The row for all queues of a system is shown only if something was counted for it.
fn is_worth_a_line(row: &QueueRow) -> bool {
    row.queue.is_some() || row.state != QueueState::Open || row.counts.values().any(|count| count.number > 0)
}

fn tone(state: QueueState) -> Tone {
    match state {
        QueueState::Unserved => Tone::Critical,
        QueueState::Overdue | QueueState::Paused => Tone::Warning,
        QueueState::Open => Tone::Good,
    }
}

fn number(row: &QueueRow, word: &str) -> Cell {
    match row.counts.get(word) {
        Some(count) if count.is_estimate => Cell::toned(count.to_string(), Tone::Dim),
        Some(count) => Cell::plain(count.to_string()),
        None => Cell::none(),
    }
}

fn value<'a>(row: &QueueRow, word: &str) -> SortValue<'a> {
    SortValue::whole(row.counts.get(word).and_then(|count| i64::try_from(count.number).ok()))
}

fn facts(context: &Context<'_>) -> Vec<Fact> {
    let queues = &context.view.adapters.queues;
    let named = queues.iter().filter(|row| row.queue.is_some()).count();
    // Some systems have no queues: their jobs are in one line without a name.
    let mut facts = Vec::new();
    facts.extend((named > 0 || queues.is_empty()).then(|| (count(named, "queue", "queues"), Tone::Plain)));
    for state in [QueueState::Unserved, QueueState::Overdue, QueueState::Paused] {
        let number = queues.iter().filter(|row| row.state == state).count();
        facts.extend((number > 0).then(|| (format!("{number} {}", state.as_str()), tone(state))));
    }
    facts.extend(gaps(context, Part::Depth));
    facts
}

fn why(context: &Context<'_>, row: &QueueRow) -> String {
    match row.state {
        QueueState::Unserved => {
            let rows = context.snapshot.adapters.get(row.place);
            let is_away =
                rows.is_some_and(|rows| rows.workers.last_rows().is_empty() && rows.sessions == Some(0));
            let who = if is_away {
                "no session of a worker is connected"
            } else {
                "no worker of this system is alive"
            };
            format!(": jobs are due, and {who}")
        }
        QueueState::Overdue => ": jobs are due for longer than [thresholds] task_overdue".to_owned(),
        QueueState::Paused => match context.age(row.paused_at) {
            Some(age) => {
                format!(": for {}; no worker takes its jobs until it is resumed", text::duration(age))
            }
            None => ": no worker takes its jobs until it is resumed".to_owned(),
        },
        QueueState::Open => String::new(),
    }
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = Queues::find(context, id)?;
    let counts: Vec<(&str, String)> =
        row.counts.iter().map(|(word, count)| (&**word, count.to_string())).collect();
    let mut lines = vec![
        state((row.state.as_str(), tone(row.state)), why(context, row)),
        field("queue", text::one_line(row.queue.as_deref().unwrap_or("all queues together")), Tone::Plain),
        field("kept in", with_version(context, row.place), Tone::Plain),
        fields(&counts),
    ];
    if row.oldest_at.is_some() {
        lines.push(field("oldest due", ago(context, row.oldest_at), Tone::Plain));
    }
    Some(lines)
}
