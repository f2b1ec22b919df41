//! The workers of other job systems.
//!
//! ```text
//!   STATE    SOURCE       WORKER          KIND    QUEUES    PROOF      JOBS  BEAT     UP     PID
//!   silent   Solid Queue  web-1:4711      Worker  *         heartbeat   2/3  7m4s   2h1m       -
//! ```

use super::cell::attempts;
use super::column::{BEAT, Listed, listed_rows};
use super::definition::{
    Fact, PaneDefinition, ReadState, count, gaps, is_tried, of_source, read_at, source, with_version,
};
use super::{Cell, RowId, SortValue};
use crate::app::context::Context;
use crate::app::detail::{ago, drop_empty, field, fields, heading, held_by, number, state, words};
use crate::app::line::{Line, Tone};
use crate::model::adapter::{JobRow, Part, Parts, Proof, Worker, WorkerRow, WorkerState};
use crate::text;

listed_rows!(Workers = WorkerRow, |context| &context.view.adapters.workers, |row| RowId::Worker(row.id));

static COLUMNS: &[Column] = &[
    Column::state(
        "gone: it lost its lock or session; silent: for longer than its system permits; stopped: it reported that",
        7,
        |row, _| (row.state.as_str(), tone(row.state)),
    ),
    source(|row, _| Some(&row.source)),
    Column::worker(("WORKER", "worker", "its name, or its id"), (12, 30), |row, _| {
        Some(row.worker.name.as_deref().unwrap_or(&row.worker.id))
    }),
    Column::text(("KIND", "kind", "its role: works, dispatches, leads"), (6, 12), |row, _| {
        row.worker.kind.as_deref()
    })
    .rank(5)
    .only_where(|context| any(context, |worker| worker.kind.is_some())),
    Column::text(("QUEUES", "queues", "the queues that it takes jobs from"), (8, 20), |row, _| {
        row.worker.queues.as_deref()
    })
    .rank(4)
    .only_where(|context| any(context, |worker| worker.queues.is_some())),
    Column::cell(
        ("PROOF", "proof", "the evidence of its state: its lock, its session, its last heartbeat"),
        (9, 9),
        |row, _, _| super::jobs::proof(row.proof),
    )
    .rank(2),
    Column::sorted(
        ("JOBS", "jobs", "jobs that it runs, and its limit"),
        (5, 7),
        |row, _, _| busy(row),
        |row, _| SortValue::whole(row.busy),
    )
    .right(),
    Column::since(BEAT, (7, 7), Tone::Plain, |row, _| row.worker.beat_at),
    Column::since(("UP", "up", "since it was started"), (7, 7), Tone::Dim, |row, _| row.worker.started_at)
        .rank(6),
    Column::number(
        ("PID", "pid", "its session, or the one that holds its lock"),
        (7, 8),
        Tone::Plain,
        |row, _| row.pid.map(i64::from),
    )
    .left()
    .rank(7),
    Column::text(("HOST", "host", "its host"), (8, 0), |row, _| row.worker.host.as_deref()).rank(8),
];

pub(super) static PANE: PaneDefinition = PaneDefinition {
    is_there: Some(|_, snapshot| is_tried(snapshot, &[Part::Workers])),
    empty: "no worker is listed",
    parts: Parts::of(&[Part::Workers, Part::Running]),
    facts: |context, _| facts(context),
    read: |context| ReadState { at: read_at(context, Part::Workers), error: None },
    is_state: |word| WorkerState::named(word).is_some(),
    name: |context, id| of_source("Worker", Workers::find(context, id).map(|row| &row.source)),
    label: |_, _| "a worker".to_owned(),
    detail: |context, id, _| detail(context, id),
    ..PaneDefinition::new(("Job workers", "a worker"), &COLUMNS, Workers::rows)
};

fn tone(state: WorkerState) -> Tone {
    match state {
        WorkerState::Gone | WorkerState::Silent => Tone::Critical,
        WorkerState::Live => Tone::Good,
        WorkerState::Unknown | WorkerState::Stopped => Tone::Dim,
    }
}

fn any(context: &Context<'_>, is: impl Fn(&Worker) -> bool) -> bool {
    context.snapshot.adapters.iter().any(|rows| rows.workers.last_rows().iter().any(&is))
}

/// Jobs that it runs, and the number that it can run at once: `2/3`.
fn busy(row: &WorkerRow) -> Cell {
    match (row.busy, row.worker.capacity) {
        (None, Some(capacity)) => Cell::plain(format!("?/{capacity}")),
        (busy, capacity) => attempts(busy, capacity),
    }
}

fn facts(context: &Context<'_>) -> Vec<Fact> {
    let workers = &context.view.adapters.workers;
    let mut facts = vec![(count(workers.len(), "worker", "workers"), Tone::Plain)];
    for state in [WorkerState::Gone, WorkerState::Silent] {
        let number = workers.iter().filter(|row| row.state == state).count();
        facts.extend((number > 0).then(|| (format!("{number} {}", state.as_str()), Tone::Critical)));
    }
    facts.extend(gaps(context, Part::Workers));
    facts
}

fn why(context: &Context<'_>, row: &WorkerRow) -> String {
    let since = context.age(row.since).map(text::duration).unwrap_or_default();
    let words = match (row.state, row.proof) {
        (WorkerState::Gone, Proof::Lock) => {
            ": no session has held its lock for {since}; its session ended, but its process may still run"
        }
        (WorkerState::Gone, Proof::Presence) => {
            ": last heartbeat {since} ago, and no session of it is connected"
        }
        (WorkerState::Gone, _) => ": its session ended, but it is still listed",
        (WorkerState::Silent, _) => {
            ": last heartbeat {since} ago, longer than its system permits; it may still be working"
        }
        (WorkerState::Live, Proof::Lock) => ": its lock is held",
        (WorkerState::Live, Proof::Session) => ": its session is connected",
        (WorkerState::Live, _) => ": it sent a heartbeat",
        (WorkerState::Stopped, _) => ": {since} ago, according to its row",
        (WorkerState::Unknown, Proof::Lock) => ": no session has held its lock for {since}",
        (WorkerState::Unknown, _) => ": it is listed; not known whether it is alive",
    };
    words.replace("{since}", &since)
}

fn detail(context: &Context<'_>, id: RowId) -> Option<Vec<Line>> {
    let row = Workers::find(context, id)?;
    let worker = &row.worker;
    let mut lines = vec![
        state((row.state.as_str(), tone(row.state)), why(context, row)),
        field("worker", words(worker.name.as_ref()), Tone::Plain),
        field("id", text::one_line(&worker.id), Tone::Plain),
        field("kept in", with_version(context, row.place.0), Tone::Plain),
        field("host", words(worker.host.as_ref()), Tone::Plain),
        field("kind", words(worker.kind.as_ref()), Tone::Plain),
        field("queues", words(worker.queues.as_ref()), Tone::Plain),
        fields(&[
            ("process id", number(worker.pid)),
            ("jobs", number(row.busy)),
            ("of", number(worker.capacity)),
            ("sessions", number(worker.sessions)),
        ]),
        fields(&[
            ("started", ago(context, worker.started_at)),
            ("last heartbeat", ago(context, worker.beat_at)),
            ("stopped", ago(context, worker.stopped_at)),
        ]),
    ];
    lines.extend(held_by(context, worker.key, row.pid));
    drop_empty(&mut lines);
    let jobs = jobs(context, row.place.0, worker);
    if !jobs.is_empty() {
        lines.push(Line::new());
        lines.push(heading("It runs"));
        lines.extend(jobs.into_iter().map(|job| job_line(context, job)));
    }
    Some(lines)
}

/// The jobs that it runs, as far as they were read.
fn jobs<'a>(context: &Context<'a>, place: usize, worker: &Worker) -> Vec<&'a JobRow> {
    let rows = context.view.adapters.rows.iter();
    let is_its = |row: &&JobRow| {
        row.place == place && row.part == Part::Running && row.job.worker.as_deref() == Some(&*worker.id)
    };
    rows.filter(is_its).take(crate::app::detail::LIST).collect()
}

fn job_line(context: &Context<'_>, row: &JobRow) -> Line {
    let (state, tone) = super::jobs::state_of(row);
    let name = text::one_line_prefix(super::jobs::title(row), 200);
    let runs = context.age(row.job.started_at).map(|age| format!("  for {}", text::duration(age)));
    let line = Line::new().with("  ", Tone::Plain).with(format!("{state:<8} "), tone);
    line.with(name, Tone::Plain).with(runs.unwrap_or_default(), Tone::Dim)
}
