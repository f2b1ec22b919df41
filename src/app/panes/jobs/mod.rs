//! The jobs of other systems.
//!
//! ```text
//!   STATE    SOURCE       JOB          QUEUE    WORKER     PROOF        RUN    DUE  TRY  RECOVERY
//!   lost     Solid Queue  InvoiceJob   billing  web:4711   heartbeat  12m4s      -    -  as failed (ProcessPrunedError) when …
//! ```

pub(in crate::app) mod detail;

use crate::app::context::Context;
use crate::app::line::Tone;
use crate::app::panes::cell::worker;
use crate::app::panes::column::Columns;
use crate::app::panes::definition::{Definition, Read};
use crate::app::panes::facts::{Fact, count, stale};
use crate::app::panes::installations::{name, source};
use crate::app::panes::row::{Row, RowId};
use crate::app::panes::words::{TRY, WORKER};
use crate::app::panes::{Cell, Rows, Value};
use crate::model::adapter::{InstallationRows, JobRow, Part, Parts, Proof, State};
use crate::text;

struct Jobs;

impl Rows for Jobs {
    type Row<'a> = &'a JobRow;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<&'a JobRow> {
        context.view.adapters.rows.get(row.at()?)
    }

    fn id(_: &Context<'_>, row: &JobRow) -> Option<RowId> {
        Some(RowId::Job(row.id))
    }
}

type Column = crate::app::panes::Column<Jobs>;

static COLUMNS: Columns<Jobs> = Columns {
    shown: &[
        Column::state(
            (
                "STATE",
                "state",
                "state of the job; orphan, lost: its worker has ended or is silent; late: its system should have returned it to the queue",
            ),
            (9, 9),
            |row, _| (row.judged.state.as_str(), tone(row.judged.state)),
        ),
        source(|row, _| Some(&row.source)),
        Column::text(("JOB", "job", "its type, or its id"), (12, 28), |row, _| {
            Some(row.job.name.as_deref().unwrap_or(&row.job.id))
        }),
        Column::text(("QUEUE", "queue", "its queue"), (7, 12), |row, _| row.job.queue.as_deref()).rank(4),
        Column::sorted(
            WORKER,
            (9, 18),
            |row, _, room| worker(row.worker.as_deref(), room),
            |row, _| Value::text(row.worker.as_deref()),
        )
        .rank(2),
        Column::cell(
            (
                "PROOF",
                "proof",
                "the evidence of its worker: a lock, its session, a heartbeat, no row, a lease, or only the age",
            ),
            (9, 9),
            |row, _, _| proof(row.judged.proof),
        ),
        Column::age(("RUN", "run", "since it was started"), (6, 6), Tone::Plain, run),
        Column::sorted(
            ("DUE", "due", "how long it has been due, or until it is due"),
            (9, 9),
            |row, context, _| due(row, context).map_or_else(Cell::none, due_cell),
            |row, context| Value::number(due(row, context)),
        )
        .right()
        .rank(5),
        Column::cell(TRY, (4, 5), |row, _, _| attempts(row)).right().rank(6),
        Column::number(
            ("PID", "pid", "the session that holds its lock, or runs it"),
            (7, 8),
            Tone::Plain,
            |row, _| row.judged.pid.map(i64::from),
        )
        .left()
        .rank(7),
        Column::sorted(
            (
                "RECOVERY",
                "back",
                "how and when its system recovers a lost job, or why not; otherwise its last error",
            ),
            (24, 0),
            |row, _, _| says(row),
            |row, _| {
                Value::text(
                    row.comes_back.as_deref().or(row.job.stuck.as_deref()).or(row.job.error.as_deref()),
                )
            },
        )
        .rank(1),
    ],
    others: &[],
};

pub(in crate::app::panes) static PANE: Definition = Definition {
    is_there: |has| has.jobs,
    search: Some(|snapshot| &snapshot.detection.adapters),
    empty: "no jobs",
    parts: Parts::of(&[
        Part::Workers,
        Part::Running,
        Part::Due,
        Part::Scheduled,
        Part::Blocked,
        Part::Failed,
        Part::Paused,
    ]),
    facts: |context, _| facts(context),
    read: |context| Read { at: context.snapshot.adapters.iter().filter_map(read_at).max(), error: None },
    is_state: |word| State::ALL.iter().any(|state| state.as_str().eq_ignore_ascii_case(word)),
    name: |context, id| match detail::job(context, id) {
        Some(row) => format!("Job of {}", text::one_line(&row.source)),
        None => "Job".to_owned(),
    },
    label: |_, _| "a job".to_owned(),
    detail: detail::lines,
    ..Definition::new(("Jobs", "a job"), &COLUMNS, |context, _| Row::all(context.view.adapters.rows.len()))
};

pub(super) fn tone(state: State) -> Tone {
    match state {
        State::Orphan | State::Lost => Tone::Critical,
        State::Late | State::Slow | State::Overdue | State::Paused | State::Failed => Tone::Warning,
        State::Running => Tone::Good,
        State::Blocked | State::Due | State::Retry => Tone::Plain,
        State::Unknown | State::Scheduled | State::Done => Tone::Dim,
    }
}

pub(super) fn proof(proof: Proof) -> Cell {
    if proof == Proof::None { Cell::none() } else { Cell::plain(proof.as_str()) }
}

/// How long it has been running; `None` for a job that has ended or waits.
fn run(row: &JobRow, context: &Context<'_>) -> Option<f64> {
    let runs = &*row.job.state == "running";
    context.age(row.job.started_at).filter(|_| runs)
}

/// For a waiting job, seconds since it may be started; negative before that.
fn due(row: &JobRow, context: &Context<'_>) -> Option<f64> {
    let waits = matches!(
        row.judged.state,
        State::Due | State::Overdue | State::Retry | State::Scheduled | State::Paused | State::Blocked
    );
    let due = row.job.due_at.filter(|_| waits)?;
    Some((context.snapshot.taken_at - due).as_seconds_f64())
}

fn due_cell(seconds: f64) -> Cell {
    let when = if seconds < 0.0 { "in " } else { "" };
    Cell::toned(format!("{when}{}", text::duration(seconds.abs())), Tone::Dim)
}

/// The attempt and the maximum number of attempts: `1/3`.
fn attempts(row: &JobRow) -> Cell {
    match (row.job.attempt, row.job.max_attempts) {
        (None, _) => Cell::none(),
        (Some(attempt), None) => Cell::plain(attempt.to_string()),
        (Some(attempt), Some(most)) => Cell::plain(format!("{attempt}/{most}")),
    }
}

fn says(row: &JobRow) -> Cell {
    match (row.comes_back.as_ref().or(row.job.stuck.as_ref()), &row.job.error) {
        (Some(text), _) => Cell::server(Some(text)),
        (None, Some(error)) => Cell::server(Some(error)).with_tone(Tone::Dim),
        (None, None) => Cell::server(row.job.note.as_deref()),
    }
}

fn read_at(rows: &InstallationRows) -> Option<crate::model::Timestamp> {
    rows.jobs.values().filter_map(|read| read.section.taken_at).max()
}

const NAMED: usize = 3;

/// `GoodJob · River jobs · 2 systems without jobs · 3 lost · 1 system not read`
fn facts(context: &Context<'_>) -> Vec<Fact> {
    let installations = &context.snapshot.adapters;
    let (refused, read): (Vec<_>, Vec<_>) =
        installations.iter().partition(|rows| rows.installation.refused.is_some());
    // Other systems have only leases or schedules.
    let read: Vec<_> = read.into_iter().filter(|rows| !rows.jobs.is_empty()).collect();
    let mut facts = systems(&read);
    let lost = context.view.adapters.rows.iter().filter(|row| row.judged.state.is_lost()).count();
    if lost > 0 {
        facts.push((format!("{} lost", text::count(lost as u64)), Tone::Critical));
    }
    facts.extend(listed(context));
    let errors = installations.iter().flat_map(|rows| rows.jobs.values());
    let error =
        errors.filter_map(|read| Some(stale(context, read.section.taken_at, read.section.error.as_deref()?)));
    facts.extend(error.take(1));
    if installations.iter().any(|rows| rows.jobs.values().any(|read| read.is_cut)) {
        facts.push(("more are not read".to_owned(), Tone::Warning));
    }
    if !refused.is_empty() {
        facts.push((count(refused.len(), "system not read", "systems not read"), Tone::Warning));
    }
    facts
}

/// `20 of 1,204 due listed`: only the jobs that have been due longest are read.
fn listed(context: &Context<'_>) -> Option<Fact> {
    let board = &context.view.adapters;
    let listed = board.rows.iter().filter(|row| row.part == Part::Due).count() as u64;
    let counts = || board.queues.iter().filter_map(|row| row.counts.get("due"));
    let due: u64 = counts().map(|due| due.number).sum();
    let more = if counts().any(|due| due.is_least) { "+" } else { "" };
    (due > listed && listed > 0)
        .then(|| (format!("{listed} of {}{more} due listed", text::count(due)), Tone::Plain))
}

/// Names the systems with jobs as far as there is room, and counts the others; each row shows its system.
fn systems(read: &[&InstallationRows]) -> Vec<Fact> {
    let has_jobs =
        |rows: &&InstallationRows| rows.jobs.values().any(|read| !read.section.last_rows().is_empty());
    let (busy, idle): (Vec<&InstallationRows>, Vec<&InstallationRows>) =
        read.iter().copied().partition(has_jobs);
    let is_few = read.len() <= NAMED;
    let named = busy.iter().chain(idle.iter().filter(|_| is_few)).take(NAMED);
    let mut facts: Vec<Fact> = named.map(|rows| (name(rows), Tone::Plain)).collect();
    if busy.len() > NAMED {
        facts.push((format!("{} more with jobs", busy.len() - NAMED), Tone::Plain));
    }
    if !is_few && !idle.is_empty() {
        facts.push((count(idle.len(), "system without jobs", "systems without jobs"), Tone::Dim));
    }
    facts
}
