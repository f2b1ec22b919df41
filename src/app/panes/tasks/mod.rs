//! The scheduled tasks: the Tasks screen, and a pane of the Overview.
//!
//! ```text
//!   STATE    TASK            WORKER       RUN LIMIT  OF LIMIT      NEXT  PID    TRY
//!   orphan   报表生成任务    worker-7  41m02s   30m  ██████████ 136%  -    -      2/3
//! ```

mod detail;

use std::borrow::Cow;

use super::cell::{attempts, job_tone, used_up};
use super::column::{BEAT, Listed, TABLE, TRY, WORKER, listed_rows};
use super::definition::{Fact, PaneDefinition, ReadState, is_unsearched, more_unread, stale};
use super::{Cell, RowId, Rows, SortValue};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::task::{Execution, JobState, Schedule, TaskId, TaskRow};
use crate::order::SortExt;
use crate::text;

listed_rows!(Tasks = TaskRow, |context| &context.view.tasks.rows, |row| RowId::Task(row.task, row.again));

static COLUMNS: &[Column] = &[
    Column::state("state of the task; each is explained below", 8, |row, _| {
        (row.state.as_str(), job_tone(row.state))
    }),
    Column::sorted(
        ("TASK", "task", "name of the task"),
        (18, 36),
        |row, context, _| Cell::server(Some(&row.name(context.snapshot))),
        |row, context| SortValue::Text(Cow::Owned(row.name(context.snapshot).to_string())),
    ),
    Column::worker(WORKER, (12, 24), |row, context| execution(context, row)?.worker.as_deref()),
    Column::age(("RUN", "run", "how long it has run"), (6, 6), Tone::Plain, |row, context| {
        row.age(context.snapshot)
    }),
    Column::sorted(
        ("LIMIT", "limit", "its timeout"),
        (6, 6),
        |row, context, _| limit(context, row),
        |row, _| SortValue::Number(row.limit),
    )
    .right(),
    Column::sorted(
        ("OF LIMIT", "gauge", "how much of its timeout is used up"),
        (14, 22),
        |row, context, room| gauge(context, row, room),
        |row, context| {
            SortValue::number(row.age(context.snapshot).map(|age| age / row.limit.max(f64::MIN_POSITIVE)))
        },
    )
    .rank(4),
    Column::sorted(
        ("NEXT", "next", "time until it is due, or since"),
        (11, 11),
        |row, context, _| next(context, row),
        |row, context| SortValue::number(row.due_in(context.snapshot)),
    )
    .right()
    .rank(1),
    Column::since(("LAST", "last", "since its last run began"), (6, 6), Tone::Dim, |row, context| {
        schedule(context, row)?.last_run_at
    })
    .rank(3),
    Column::sorted(
        ("PID", "pid", "the session that holds its key"),
        (7, 8),
        |row, _, _| holder(row),
        |row, _| SortValue::whole(row.holder.map(i64::from)),
    )
    .rank(2),
    Column::cell(TRY, (4, 5), |row, context, _| tries(context, row)).right().rank(5),
    Column::since(BEAT, (6, 6), Tone::Dim, |row, context| execution(context, row)?.heartbeat_at).rank(6),
    Column::age(
        ("RETRY", "retry", "pause before a failed attempt is repeated; longer each time"),
        (5, 6),
        Tone::Dim,
        |row, context| schedule(context, row)?.retry_delay,
    )
    .rank(10),
    Column::text(("TYPE", "type", "its type"), (8, 14), |row, context| {
        schedule(context, row)?.kind.as_deref()
    })
    .rank(7),
    Column::text(("CRON", "cron", "its schedule"), (12, 16), |row, context| {
        schedule(context, row)?.cron.as_deref()
    })
    .rank(8),
    Column::text(TABLE, (14, 0), |row, context| row.set(context.snapshot).map(|set| &*set.tables.schedules))
        .rank(9)
        .kept_where(|context| context.snapshot.task_sets.len() > 1),
];

pub(in crate::app::panes) static PANE: PaneDefinition = PaneDefinition {
    order: |context, rows| {
        rows.order_by_cached_key(|row| Tasks::get(context, *row).map(|row| urgency(context, row)));
    },
    is_there: Some(|_, snapshot| is_unsearched(snapshot) || !snapshot.task_sets.is_empty()),
    absent: Some("no task tables here; [tables] in the config can name some"),
    empty: "no scheduled tasks",
    facts: |context, _| facts(context),
    read: |context| ReadState {
        at: context.snapshot.task_sets.iter().find_map(|set| set.tasks.taken_at),
        error: None,
    },
    prefers_names: true,
    is_state: |word| JobState::named(word).is_some(),
    name,
    label,
    detail: |context, id, _| detail::lines(context, id),
    ..PaneDefinition::new(("Tasks", "a task"), &COLUMNS, Tasks::rows)
};

fn schedule<'a>(context: &Context<'a>, row: &'a TaskRow) -> Option<&'a Schedule> {
    row.schedule(context.snapshot)
}

fn execution<'a>(context: &Context<'a>, row: &'a TaskRow) -> Option<&'a Execution> {
    row.execution(context.snapshot)
}

fn name(context: &Context<'_>, id: RowId) -> String {
    let RowId::Task(task, again) = id else { return String::new() };
    match context.task(task, again) {
        Some(row) => format!("Task {} · {}", task.id, text::one_line(&row.name(context.snapshot))),
        None => format!("Task {}", task.id),
    }
}

fn label(context: &Context<'_>, id: RowId) -> String {
    let RowId::Task(task, again) = id else { return String::new() };
    let name = context.task(task, again).map(|row| row.name(context.snapshot));
    let name = name.unwrap_or_else(|| format!("task {}", task.id).into());
    text::fit(&text::one_line(&name), 20).into_owned()
}

/// `in 4m10s`, `12m ago`: when it is or was due; empty for a running task. `orphan 18s`: it will be an orphan if there
/// is no sign of life until then.
fn next(context: &Context<'_>, row: &TaskRow) -> Cell {
    if let Some(left) = row.orphan_in {
        return Cell::toned(format!("orphan {}", text::duration(left.max(0.0))), Tone::Warning);
    }
    let waiting = row.execution.is_none() && row.schedule_state != Some(JobState::Disabled);
    match row.due_in(context.snapshot).filter(|_| waiting) {
        Some(seconds) if seconds > 0.0 => Cell::plain(format!("in {}", text::duration(seconds))),
        Some(seconds) => {
            let late = row.state == JobState::Overdue;
            let tone = if late { Tone::Warning } else { Tone::Plain };
            Cell::toned(format!("{} ago", text::duration(-seconds)), tone)
        }
        None => Cell::none(),
    }
}

/// `█████▌░░░  61%`: the share of its time limit that a run has used.
fn gauge(context: &Context<'_>, row: &TaskRow, room: u16) -> Cell {
    let age = row.age(context.snapshot).filter(|_| row.limit > 0.0);
    age.map_or_else(Cell::none, |age| used_up(age / row.limit, room))
}

/// `2/3`: the running attempt or the number of failed attempts, and the maximum.
fn tries(context: &Context<'_>, row: &TaskRow) -> Cell {
    let attempt = if let Some(execution) = row.execution(context.snapshot) {
        execution.attempt
    } else {
        let failed = row.schedule(context.snapshot).and_then(|task| task.attempts);
        // After a task was given up and started again, it counts from zero; the log has the actual number.
        failed.max(Some(i64::from(row.streak.attempts))).filter(|failed| *failed > 0)
    };
    attempts(attempt, row.schedule(context.snapshot).and_then(|task| task.max_attempts))
}

fn holder(row: &TaskRow) -> Cell {
    match (row.held, row.holder) {
        (true, Some(pid)) => Cell::plain(pid.to_string()),
        (true, None) => Cell::plain("prepared"),
        (false, _) => Cell::none(),
    }
}

/// The timeout, for a running task and for a task with a timeout of its own.
fn limit(context: &Context<'_>, row: &TaskRow) -> Cell {
    let has_one = row.schedule(context.snapshot).is_some_and(|task| task.timeout.is_some());
    let shown = has_one || row.execution(context.snapshot).is_some();
    Cell::duration(Some(row.limit).filter(|_| shown), Tone::Dim)
}

/// By the urgency of the state; within a state by start or due time.
fn urgency(context: &Context<'_>, row: &TaskRow) -> (JobState, i64, TaskId, Option<i64>) {
    let began = row.execution(context.snapshot).and_then(|execution| execution.started_at);
    let due = || row.schedule(context.snapshot).and_then(|task| task.next_run_at);
    let since = began.or_else(due).map_or(i64::MAX, |at| at.timestamp_micros());
    (row.state, since, row.task, row.again)
}

/// The age of the rows of a table that could not be read; then `10 running · 1 orphan · 1 slow · 2 overdue`, and what
/// was left out.
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let tasks = &context.view.tasks;
    // Each task is in one state, so that the numbers add up.
    let running =
        [JobState::Running, JobState::MaybeRunning, JobState::Uncommitted, JobState::MaybeUncommitted];
    let running: usize = running.into_iter().map(|state| tasks.count(state)).sum();
    let mut facts = staleness(context);
    facts.push((format!("{} running", text::count(running as u64)), Tone::Plain));
    let urgent = urgent(context);
    let next = next_task(context).filter(|_| urgent.is_empty());
    facts.extend(next.map(|next| (format!("next: {next}"), Tone::Plain)));
    facts.extend(urgent);
    let doubtful = [JobState::LeftOver, JobState::Settling, JobState::Unknown];
    facts.extend(doubtful.into_iter().filter_map(|state| count(context, state)));
    facts.extend(more_unread(context.snapshot.task_sets.iter().any(|set| set.tasks.is_cut)));
    if context.snapshot.task_sets.iter().any(|set| set.executions.is_cut) {
        facts.push(("older executions are not read".to_owned(), Tone::Warning));
    }
    facts
}

/// The task that is due next: `send digests in 12s`.
pub(super) fn next_task(context: &Context<'_>) -> Option<String> {
    let rows = context.view.tasks.rows.iter().filter(|row| row.state != JobState::Disabled);
    let due = rows.filter_map(|row| Some((row.due_in(context.snapshot).filter(|left| *left >= 0.0)?, row)));
    let (left, row) = due.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = row.name(context.snapshot);
    Some(format!("{} in {}", text::fit(&text::one_line(&name), NAME), text::age(left)))
}

const NAME: usize = 30;

fn urgent(context: &Context<'_>) -> Vec<Fact> {
    let states = [
        JobState::Orphan,
        JobState::MaybeOrphan,
        JobState::Slow,
        JobState::MaybeSlow,
        JobState::GivenUp,
        JobState::Overdue,
        JobState::Leaked,
    ];
    states.into_iter().filter_map(|state| count(context, state)).collect()
}

/// `2 overdue`; `None` if there are none.
pub fn count(context: &Context<'_>, state: JobState) -> Option<Fact> {
    let number = context.view.tasks.count(state);
    let tone = if state == JobState::Orphan { Tone::Critical } else { Tone::Warning };
    (number > 0).then(|| (format!("{} {}", text::count(number as u64), state.as_str()), tone))
}

fn staleness(context: &Context<'_>) -> Vec<Fact> {
    let mut facts = Vec::new();
    for set in context.snapshot.task_sets.iter() {
        let tasks = set.tasks.error.as_ref().map(|error| (set.tasks.taken_at, error));
        let log = set.executions.error.as_ref().map(|error| (set.executions.taken_at, error));
        // Both are usually locked by the same session, and there is only one line.
        if let Some((taken, error)) = tasks.or(log) {
            facts.push(stale(context, taken, error));
        }
    }
    facts
}
