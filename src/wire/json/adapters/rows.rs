use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::super::rows::Time;
use super::super::{SectionState, readable};
use crate::model::adapter::{
    AdapterLease, AdapterSchedule, COUNTED, Depth, Installation, InstallationRows, JobRow, OtherLeaseRow,
    Part, PartRows, Paused, QueueRow, ScheduleState, Worker, WorkerRow,
};
use crate::model::snapshot::Snapshot;
use crate::model::systems::TextId;
use crate::model::view::View;

#[derive(Debug, Serialize)]
pub(in crate::wire::json) struct InstallationDocument<'a> {
    adapter: &'a str,
    title: &'a str,
    schema: &'a str,
    prefix: &'a str,
    version: Option<&'a str>,
    refused: Option<&'a str>,
    /// Sessions of its workers, if the adapter can identify them.
    sessions: Option<u64>,
    jobs: Vec<Job<'a>>,
    workers: Vec<WorkerJson<'a>>,
    depth: Vec<DepthJson<'a>>,
    queues: Vec<QueueJson<'a>>,
    paused: Vec<PausedJson<'a>>,
    leases: Vec<LeaseJson<'a>>,
    schedules: Vec<ScheduleJson<'a>>,
    sections: BTreeMap<&'static str, PartState<'a>>,
}

#[derive(Debug, Serialize)]
struct Job<'a> {
    id: &'a str,
    state: &'static str,
    proof: &'static str,
    since: Option<Time>,
    comes_back: Option<&'a str>,
    advice: Option<&'a str>,
    name: Option<&'a str>,
    queue: Option<&'a str>,
    priority: Option<i64>,
    attempt: Option<i64>,
    max_attempts: Option<i64>,
    due_at: Option<Time>,
    started_at: Option<Time>,
    finished_at: Option<Time>,
    limit: Option<f64>,
    worker: Option<&'a str>,
    worker_id: Option<&'a str>,
    pid: Option<i32>,
    sessions: Option<u64>,
    /// As text, because not every JSON reader has 64-bit integers.
    lock_key: Option<String>,
    lease_until: Option<Time>,
    blocked_by: Option<&'a str>,
    error: Option<&'a str>,
    note: Option<&'a str>,
    concurrency_key: Option<&'a str>,
    stuck: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct WorkerJson<'a> {
    id: &'a str,
    name: Option<&'a str>,
    host: Option<&'a str>,
    kind: Option<&'a str>,
    queues: Option<&'a str>,
    pid: Option<i64>,
    capacity: Option<i64>,
    busy: Option<i64>,
    started_at: Option<Time>,
    beat_at: Option<Time>,
    stopped_at: Option<Time>,
    state: &'static str,
    proof: &'static str,
    /// Start of the state: when its lock was first seen free, or its last sign of life.
    since: Option<Time>,
    /// The session that holds its lock, or the worker's own session.
    session_pid: Option<i32>,
    /// Number of the worker's own sessions.
    sessions: Option<i64>,
}

#[derive(Debug, Serialize)]
struct QueueJson<'a> {
    /// `None`: all queues together.
    queue: Option<&'a str>,
    state: &'static str,
    oldest_at: Option<Time>,
}

#[derive(Debug, Serialize)]
struct DepthJson<'a> {
    queue: Option<&'a str>,
    state: &'a str,
    number: i64,
    is_more: bool,
    is_estimate: bool,
    oldest_at: Option<Time>,
}

#[derive(Debug, Serialize)]
struct PausedJson<'a> {
    queue: &'a str,
    since: Option<Time>,
}

#[derive(Debug, Serialize)]
struct LeaseJson<'a> {
    id: &'a str,
    owner: Option<&'a str>,
    token: Option<&'a str>,
    acquired_at: Option<Time>,
    expires_at: Option<Time>,
    held: Option<bool>,
    state: &'static str,
    note: Option<&'a str>,
    session_pid: Option<i32>,
}

#[derive(Debug, Serialize)]
struct ScheduleJson<'a> {
    id: &'a str,
    name: Option<&'a str>,
    schedule: Option<&'a str>,
    queue: Option<&'a str>,
    next_run_at: Option<Time>,
    last_run_at: Option<Time>,
    enabled: Option<bool>,
    state: &'static str,
}

#[derive(Debug, Serialize)]
struct PartState<'a> {
    #[serde(flatten)]
    section: SectionState<'a>,
    is_cut: bool,
}

pub(in crate::wire::json) fn installations<'a>(
    view: &'a View,
    snapshot: &'a Snapshot,
) -> Vec<InstallationDocument<'a>> {
    let each = snapshot.adapters.iter().enumerate();
    each.map(|(place, rows)| document(view, place, rows)).collect()
}

fn document<'a>(view: &'a View, place: usize, rows: &'a InstallationRows) -> InstallationDocument<'a> {
    let Installation { adapter, schema, prefix, version, refused, .. } = &*rows.installation;
    let is_readable = |part: Part| rows.jobs.get(&part).is_some_and(|read| read.section.error.is_none());
    let board = &view.adapters;
    let (workers, leases) = (readable(&rows.workers.section), readable(&rows.leases.section));
    let schedules = readable(&rows.schedules.section);
    let counted = rows.counted();
    let jobs = board.rows.iter().filter(|row| row.place == place && is_readable(row.part));
    InstallationDocument {
        adapter: &adapter.name,
        title: &adapter.title,
        schema,
        prefix,
        version: version.as_deref(),
        refused: refused.as_deref(),
        sessions: rows.sessions,
        jobs: jobs.map(job).collect(),
        workers: in_order(&board.workers, place, |row| row.place)
            .filter_map(|row| Some(worker(workers.get(row.place.1)?, row)))
            .collect(),
        depth: readable(&rows.depth.section).iter().map(|one| depth(one, &counted)).collect(),
        queues: board.queues.iter().filter(|row| row.place == place).map(queue_row).collect(),
        paused: readable(&rows.paused.section).iter().map(paused).collect(),
        leases: in_order(&board.leases, place, |row| row.place)
            .filter_map(|row| Some(lease(leases.get(row.place.1)?, row)))
            .collect(),
        schedules: in_order(&board.schedules, place, |row| row.place)
            .filter_map(|row| Some(schedule(schedules.get(row.place.1)?, row.state)))
            .collect(),
        sections: sections(rows),
    }
}

fn in_order<T>(
    rows: &[T],
    installation: usize,
    place: impl Fn(&T) -> (usize, usize),
) -> impl Iterator<Item = &T> {
    let mut its: Vec<&T> = rows.iter().filter(|row| place(row).0 == installation).collect();
    its.sort_by_key(|row| place(row).1);
    its.into_iter()
}

/// The parts of the installation, by name; a part that cannot be read has the reason.
fn sections(rows: &InstallationRows) -> BTreeMap<&'static str, PartState<'_>> {
    let mut sections = BTreeMap::new();
    for choice in &rows.installation.choices {
        let refused = choice.refusal().or(rows.installation.refused.as_ref());
        let state = match (refused, choice.part) {
            (Some(reason), _) => {
                PartState { section: SectionState::new(None, Some(Cow::Borrowed(reason))), is_cut: false }
            }
            (None, Part::Workers) => state(&rows.workers),
            (None, Part::Depth) => state(&rows.depth),
            (None, Part::Paused) => state(&rows.paused),
            (None, Part::Leases) => state(&rows.leases),
            (None, Part::Schedules) => state(&rows.schedules),
            (None, part) => match rows.jobs.get(&part) {
                Some(read) => state(read),
                None => PartState { section: SectionState::new(None, None), is_cut: false },
            },
        };
        sections.insert(choice.part.as_str(), state);
    }
    sections
}

fn state<T>(read: &PartRows<T>) -> PartState<'_> {
    PartState { section: SectionState::of(&read.section), is_cut: read.is_cut }
}

fn job(row: &JobRow) -> Job<'_> {
    let JobRow { job, judged, comes_back, advice, .. } = row;
    Job {
        id: &job.id,
        state: judged.state.as_str(),
        proof: judged.proof.as_str(),
        since: judged.since.map(Time),
        comes_back: comes_back.as_deref(),
        advice: advice.as_deref(),
        name: job.name.as_deref(),
        queue: job.queue.as_deref(),
        priority: job.priority,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        due_at: job.due_at.map(Time),
        started_at: job.started_at.map(Time),
        finished_at: job.finished_at.map(Time),
        limit: job.limit,
        worker: row.worker.as_deref(),
        worker_id: job.worker.as_deref(),
        pid: judged.pid,
        sessions: row.sessions,
        lock_key: job.key.map(|key| key.to_string()),
        lease_until: job.lease_until.map(Time),
        blocked_by: job.blocked_by.as_deref(),
        error: job.error.as_deref(),
        note: job.note.as_deref(),
        concurrency_key: job.concurrency_key.as_deref(),
        stuck: job.stuck.as_deref(),
    }
}

fn worker<'a>(worker: &'a Worker, row: &WorkerRow) -> WorkerJson<'a> {
    WorkerJson {
        id: &worker.id,
        name: worker.name.as_deref(),
        host: worker.host.as_deref(),
        kind: worker.kind.as_deref(),
        queues: worker.queues.as_deref(),
        pid: worker.pid,
        capacity: worker.capacity,
        busy: row.busy,
        started_at: worker.started_at.map(Time),
        beat_at: worker.beat_at.map(Time),
        stopped_at: worker.stopped_at.map(Time),
        state: row.state.as_str(),
        proof: row.proof.as_str(),
        since: row.since.map(Time),
        session_pid: row.pid,
        sessions: worker.sessions,
    }
}

fn queue_row(row: &QueueRow) -> QueueJson<'_> {
    QueueJson { queue: row.queue.as_deref(), state: row.state.as_str(), oldest_at: row.oldest_at.map(Time) }
}

/// If all queues together exceed the counting limit, no number is complete.
fn depth<'a>(depth: &'a Depth, counted: &BTreeMap<&str, u64>) -> DepthJson<'a> {
    let most = i64::try_from(COUNTED).unwrap_or(i64::MAX);
    let is_more = !depth.is_estimate && counted.get(&*depth.state).is_some_and(|all| *all > COUNTED);
    DepthJson {
        queue: depth.queue.as_deref(),
        state: &depth.state,
        number: if depth.is_estimate { depth.number } else { depth.number.min(most) },
        is_more,
        is_estimate: depth.is_estimate,
        oldest_at: depth.oldest_at.map(Time),
    }
}

fn paused(paused: &Paused) -> PausedJson<'_> {
    PausedJson { queue: &paused.queue, since: paused.since.map(Time) }
}

fn lease<'a>(lease: &'a AdapterLease, row: &OtherLeaseRow) -> LeaseJson<'a> {
    LeaseJson {
        id: &lease.id,
        owner: lease.owner.as_deref(),
        token: lease.token.as_deref(),
        acquired_at: lease.acquired_at.map(Time),
        expires_at: lease.expires_at.map(Time),
        held: row.state.is_held(),
        state: row.state.as_str(),
        note: lease.note.as_deref(),
        session_pid: row.pid,
    }
}

fn schedule(schedule: &AdapterSchedule, state: ScheduleState) -> ScheduleJson<'_> {
    ScheduleJson {
        id: &schedule.id,
        name: schedule.name.as_deref(),
        schedule: schedule.schedule.as_deref(),
        queue: schedule.queue.as_deref(),
        next_run_at: schedule.next_run_at.map(Time),
        last_run_at: schedule.last_run_at.map(Time),
        enabled: schedule.is_enabled,
        state: state.as_str(),
    }
}

pub(in crate::wire::json) fn name(view: &View, id: TextId) -> Option<(&str, &str, &str)> {
    let row = view.adapters.rows.iter().find(|row| row.id == id)?;
    let installation = &view.snapshot.as_deref()?.adapters.get(row.place)?.installation;
    Some((&installation.adapter.name, &installation.schema, &row.job.id))
}

pub(in crate::wire::json) fn queue(view: &View, id: TextId) -> Option<(&str, &str, Option<&str>)> {
    let row = view.adapters.queues.iter().find(|row| row.id == id)?;
    let installation = &view.snapshot.as_deref()?.adapters.get(row.place)?.installation;
    Some((&installation.adapter.name, &installation.schema, row.queue.as_deref()))
}

pub(in crate::wire::json) fn lease_of(view: &View, id: TextId) -> Option<(&str, &str, &str)> {
    let (place, at) = view.adapters.leases.iter().find(|row| row.id == id)?.place;
    let rows = view.snapshot.as_deref()?.adapters.get(place)?;
    let installation = &rows.installation;
    Some((&installation.adapter.name, &installation.schema, &rows.leases.section.last_rows().get(at)?.id))
}
