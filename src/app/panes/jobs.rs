//! The jobs of other systems.
//!
//! ```text
//!   STATE    SOURCE       JOB          QUEUE    WORKER     PROOF        RUN    DUE  TRY  RECOVERY
//!   lost     Solid Queue  InvoiceJob   billing  web:4711   heartbeat  12m4s      -    -  as failed (ProcessPrunedError) when …
//! ```

use super::cell::{attempts, job_tone};
use super::column::{Listed, TRY, WORKER, listed_rows};
use super::definition::{
    Fact, PaneDefinition, ReadState, count, is_tried, more_unread, name, of_source, source, stale,
    with_version,
};
use super::{Cell, RowId, SortValue};
use crate::app::context::Context;
use crate::app::detail::{
    ago, drop_empty, field, fields, heading, held_by, in_or_ago, last_error, number, state, words,
};
use crate::app::line::{Line, Tone};
use crate::model::adapter::{self, InstallationRows, JobRow, JobState, Part, Parts, Proof};
use crate::text;

listed_rows!(Jobs = JobRow, |context| &context.view.adapters.rows, |row| RowId::Job(row.id));

static COLUMNS: &[Column] = &[
    Column::state(
        "state of the job; orphan, lost: its worker has ended or is silent; late: its system should have returned it to the queue",
        9,
        |row, _| state_of(row),
    ),
    source(|row, _| Some(&row.source)),
    Column::text(("JOB", "job", "its type, or its id"), (12, 28), |row, _| Some(title(row))),
    Column::text(("QUEUE", "queue", "its queue"), (7, 12), |row, _| row.job.queue.as_deref()).rank(4),
    Column::worker(WORKER, (9, 18), |row, _| row.worker.as_deref()).rank(2),
    Column::cell(
        (
            "PROOF",
            "proof",
            "the evidence of its worker: a lock, its session, a heartbeat, no row, a lease, or only the age",
        ),
        (9, 9),
        |row, _, _| proof(row.judged.proof),
    ),
    Column::since(("RUN", "run", "since it was started"), (6, 6), Tone::Plain, |row, _| {
        // A job that has ended or waits does not run.
        row.job.started_at.filter(|_| &*row.job.state == "running")
    }),
    Column::measure(("DUE", "due", "how long it has been due, or until it is due"), (9, 9), due, due_cell)
        .rank(5),
    Column::cell(TRY, (4, 5), |row, _, _| attempts(row.job.attempt, row.job.max_attempts)).right().rank(6),
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
        |row, _, _| explanation(row),
        |row, _| {
            SortValue::text(
                row.comes_back.as_deref().or(row.job.stuck.as_deref()).or(row.job.error.as_deref()),
            )
        },
    )
    .rank(1),
];

pub(in crate::app::panes) static PANE: PaneDefinition = PaneDefinition {
    is_there: Some(|_, snapshot| {
        let is_refused = snapshot.adapters.iter().any(|rows| rows.installation.refused.is_some());
        snapshot.detection.adapters.error.is_some() || is_refused || is_tried(snapshot, &Part::JOBS)
    }),
    empty: "no jobs",
    parts: Parts::of(&Part::JOBS).and(Parts::of(&[Part::Workers, Part::Paused])),
    facts: |context, _| facts(context),
    read: |context| ReadState { at: context.snapshot.adapters.iter().filter_map(read_at).max(), error: None },
    is_state: |word| JobState::named(word).is_some(),
    name: |context, id| of_source("Job", Jobs::find(context, id).map(|row| &row.source)),
    label: |_, _| "a job".to_owned(),
    detail: lines,
    ..PaneDefinition::new(("Jobs", "a job"), &COLUMNS, Jobs::rows)
};

pub(super) fn state_of(row: &JobRow) -> (&'static str, Tone) {
    let state = row.judged.state;
    (state.as_str(), if state == JobState::Unknown { Tone::Dim } else { job_tone(state) })
}

pub(super) fn title(row: &JobRow) -> &str {
    row.job.name.as_deref().unwrap_or(&row.job.id)
}

pub(super) fn proof(proof: Proof) -> Cell {
    if proof == Proof::None { Cell::none() } else { Cell::plain(proof.as_str()) }
}

/// For a waiting job, seconds since it may be started; negative before that.
fn due(row: &JobRow, context: &Context<'_>) -> Option<f64> {
    let waits = matches!(
        row.judged.state,
        JobState::Due
            | JobState::Overdue
            | JobState::Retry
            | JobState::Scheduled
            | JobState::Paused
            | JobState::Blocked
    );
    Some(-context.until(row.job.due_at.filter(|_| waits)?))
}

fn due_cell(seconds: f64, _: u16) -> Cell {
    let when = if seconds < 0.0 { "in " } else { "" };
    Cell::toned(format!("{when}{}", text::duration(seconds.abs())), Tone::Dim)
}

fn explanation(row: &JobRow) -> Cell {
    match (row.comes_back.as_ref().or(row.job.stuck.as_ref()), &row.job.error) {
        (Some(text), _) => Cell::server(Some(text)),
        (None, Some(error)) => Cell::server(Some(error)).with_tone(Tone::Dim),
        (None, None) => Cell::server(row.job.note.as_deref()),
    }
}

fn read_at(rows: &InstallationRows) -> Option<crate::model::Timestamp> {
    rows.jobs.values().filter_map(|read| read.taken_at).max()
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
    facts.extend((lost > 0).then(|| (format!("{} lost", text::count(lost as u64)), Tone::Critical)));
    facts.extend(listed(context));
    let errors = installations.iter().flat_map(|rows| rows.jobs.values());
    let error = errors.filter_map(|read| Some(stale(context, read.taken_at, read.error.as_deref()?)));
    facts.extend(error.take(1));
    let is_cut = installations.iter().any(|rows| rows.jobs.values().any(|read| read.is_cut));
    facts.extend(more_unread(is_cut));
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
    let has_jobs = |rows: &&InstallationRows| rows.jobs.values().any(|read| !read.last_rows().is_empty());
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

pub(in crate::app) fn job<'a>(context: &Context<'a>, id: RowId) -> Option<&'a JobRow> {
    Jobs::find(context, id)
}

fn lines(context: &Context<'_>, id: RowId, _: usize) -> Option<Vec<Line>> {
    let row = job(context, id)?;
    let (job, judged) = (&row.job, &row.judged);
    let mut lines = vec![
        state(state_of(row), why(context, row)),
        field("recovery", words(row.comes_back.as_ref()), Tone::Plain),
        field("job", words(job.name.as_ref()), Tone::Plain),
        field("id", text::one_line(&job.id), Tone::Plain),
        field("kept in", with_version(context, row.place), Tone::Plain),
        fields(&[
            ("queue", words(job.queue.as_ref())),
            ("priority", number(job.priority)),
            ("attempt", number(job.attempt)),
            ("of", number(job.max_attempts)),
        ]),
        field("worker", words(row.worker.as_ref()), Tone::Plain),
        fields(&[
            ("due", when(context, row)),
            ("started", ago(context, job.started_at)),
            ("ended", ago(context, job.finished_at)),
        ]),
        field("stuck", words(job.stuck.as_ref()), Tone::Warning),
        field("one at a time", words(job.concurrency_key.as_ref()), Tone::Plain),
        field("blocked by", words(job.blocked_by.as_ref()), Tone::Plain),
        field("note", words(job.note.as_ref()), Tone::Plain),
    ];
    if judged.state.is_lost() || judged.state == JobState::Unknown {
        let all = context.snapshot.adapters.get(row.place).and_then(|rows| rows.sessions);
        let connected = adapter::connected(row.sessions, all).unwrap_or_default();
        lines.push(field("sessions", connected, Tone::Plain));
    }
    drop_empty(&mut lines);
    lines.extend(held_by(context, job.key, judged.pid));
    if let Some(advice) = &row.advice {
        lines.push(Line::new());
        lines.push(heading("In its own console (y copies it)"));
        lines.push(Line::new().with("  ", Tone::Plain).with(text::one_line(advice), Tone::Plain));
    }
    lines.extend(last_error(job.error.as_ref()));
    Some(lines)
}

fn when(context: &Context<'_>, row: &JobRow) -> String {
    match row.job.due_at.map(|due| context.until(due)) {
        Some(left) if left > 0.0 => in_or_ago(left),
        _ => ago(context, row.job.due_at),
    }
}

fn why(context: &Context<'_>, row: &JobRow) -> String {
    let since = context.age(row.judged.since).map(text::duration).unwrap_or_default();
    let words = match (row.judged.state, row.judged.proof) {
        (JobState::Orphan, Proof::Lock) => {
            ": no session has held its lock for {since}; its session ended, but its process may still run"
        }
        (JobState::Orphan, _) => ": the session recorded for it has ended",
        (JobState::Lost, Proof::Heartbeat) => {
            ": the last heartbeat of its worker was {since} ago, longer than its system permits; it may still be working"
        }
        (JobState::Lost, Proof::Presence) => {
            ": no session of a worker has been connected for {since}; only a hint behind a pooler"
        }
        (JobState::Unknown, Proof::Presence) => ": no session of a worker has been connected for {since}",
        (JobState::Lost, Proof::Absent) => {
            ": its worker is no longer listed, and no other worker finishes it"
        }
        (JobState::Lost, _) => {
            ": its lease expired {since} ago; not known whether its worker is still working"
        }
        (JobState::Late, _) => {
            ": its system should have returned it to the queue by now; not known which worker it lost"
        }
        (JobState::Slow, _) => ": for longer than its limit",
        (JobState::Overdue, _) => ": due for longer than [thresholds] task_overdue",
        (JobState::Blocked, Proof::Lease) => {
            ": the limit that blocks it expired {since} ago, but its system has not released it"
        }
        (JobState::Unknown, Proof::Lock) => ": no session has held its lock for {since}",
        (JobState::Unknown, _) => ": recorded as running; not known whether a worker runs it",
        (JobState::Running, Proof::Lock) => ": its lock is held",
        (JobState::Running, Proof::Session) => ": the session recorded for it is connected",
        (JobState::Running, Proof::Heartbeat) => ": its worker sent a heartbeat",
        (JobState::Running, Proof::Lease) => ": its lease is valid",
        (JobState::Paused, _) => ": its queue is paused",
        _ => "",
    };
    words.replace("{since}", &since)
}
