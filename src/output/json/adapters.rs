use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::object::{self, Json, object};
use super::{SectionState, readable};
use crate::model::adapter::{
    Adapter, COUNTED, Depth, Installation, InstallationRows, JobRow, Part, QueryChoice, Rehearsal,
    ScheduleRow, Tried, WorkerRow,
};
use crate::model::lease::LeaseRow;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::view::View;
use crate::order::SortExt;

pub(super) fn installations(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let each = snapshot.adapters.iter().enumerate();
    each.map(|(place, rows)| document(view, place, rows))
}

fn document(view: &View, place: usize, rows: &InstallationRows) -> impl Json {
    let installation = &*rows.installation;
    let is_readable = |part: Part| rows.jobs.get(&part).is_some_and(|read| read.error.is_none());
    let board = &view.adapters;
    let counted = rows.counted();
    // `sessions` are those of its workers, if the adapter can identify them.
    object!(
        installation;
        adapter = installation.adapter.name,
        title = installation.adapter.title,
        schema, prefix, version, refused,
        sessions = rows.sessions,
        jobs[] = board.rows.iter().filter(|row| row.place == place && is_readable(row.part)).map(job),
        workers[] = in_order(&board.workers, &rows.workers, place, |row| row.place).map(worker),
        depth[] = readable(&rows.depth).iter().map(|one| depth(one, &counted)),
        // Without a queue: all queues together.
        queues[] = board.queues.iter().filter(|row| row.place == place).map(|row| object!(row; queue, state, oldest_at)),
        paused[] = readable(&rows.paused).iter().map(|row| object!(row; queue, since)),
        leases[] = in_order(&board.leases, &rows.leases, place, |row| row.place).map(lease),
        schedules[] = in_order(&board.schedules, &rows.schedules, place, |row| row.place).map(schedule),
        sections = sections(rows),
    )
}

/// The rows of an installation in the order of its query; none if they could not be read.
fn in_order<'a, T, R>(
    rows: &'a [T],
    read: &Section<R>,
    installation: usize,
    place: impl Fn(&T) -> (usize, usize),
) -> impl Iterator<Item = &'a T> {
    let its = rows.iter().filter(|row| place(row).0 == installation && read.is_known());
    let mut its: Vec<&T> = its.collect();
    its.order_by_key(|row| place(row).1);
    its.into_iter()
}

/// The parts of the installation, by name; a part that cannot be read has the reason.
fn sections(rows: &InstallationRows) -> BTreeMap<&'static str, impl Json> {
    let choices = rows.installation.choices.iter().map(|choice| {
        let (taken_at, error, is_cut) = rows.state_of(choice);
        let section = SectionState { taken_at, error: error.map(|error| Cow::Borrowed(&**error)) };
        (choice.part.as_str(), object!(..section.object(), is_cut))
    });
    choices.collect()
}

fn job(row: &JobRow) -> impl Json {
    let JobRow { job, judged, .. } = row;
    // The key is text, because not every JSON reader has 64-bit integers.
    object!(
        job;
        id,
        state = judged.state,
        proof = judged.proof,
        since = judged.since,
        comes_back = row.comes_back,
        advice = row.advice,
        name, queue, priority, attempt, max_attempts, due_at, started_at, finished_at, limit,
        worker = row.worker,
        worker_id = job.worker,
        pid = judged.pid,
        sessions = row.sessions,
        lock_key = job.key.map(|key| key.to_string()),
        lease_until, blocked_by, error, note, concurrency_key, stuck,
    )
}

/// `since` is the start of the state: when its lock was first seen free, or its last sign of life. `session_pid` is the
/// session that holds its lock, or the worker's own session; `sessions` is the number of the latter.
fn worker(row: &WorkerRow) -> impl Json {
    let worker = &row.worker;
    object!(
        worker;
        id, name, host, kind, queues, pid, capacity,
        busy = row.busy,
        started_at, beat_at, stopped_at,
        state = row.state,
        proof = row.proof,
        since = row.since,
        session_pid = row.pid,
        sessions,
    )
}

/// If all queues together exceed the counting limit, no number is complete.
fn depth(depth: &Depth, counted: &BTreeMap<&str, u64>) -> impl Json {
    object!(
        depth;
        queue, state,
        number = if depth.is_estimate { depth.number } else { depth.number.min(COUNTED) },
        is_more = !depth.is_estimate && counted.get(&*depth.state).is_some_and(|all| *all > COUNTED),
        is_estimate, oldest_at,
    )
}

fn lease(row: &LeaseRow) -> impl Json {
    object!(
        row;
        id = row.key,
        owner,
        token = row.token_text,
        acquired_at, expires_at,
        held = row.state.is_held(),
        state, note,
        session_pid = row.owner_pid,
    )
}

fn schedule(row: &ScheduleRow) -> impl Json {
    let schedule = &row.schedule;
    object!(
        schedule;
        id, name, schedule, queue, next_run_at, last_run_at,
        enabled = schedule.is_enabled,
        state = row.state,
    )
}

pub fn adapters(found: &[Installation], adapters: &[Arc<Adapter>]) -> Result<String, serde_json::Error> {
    object::text(&object!(
        adapters[] = adapters.iter().map(|adapter| object!(adapter; name, title, licence, seen, is_built_in)),
        installations[] = found.iter().map(installation),
    ))
}

fn installation(installation: &Installation) -> impl Json {
    object!(
        installation;
        adapter = installation.adapter.name,
        schema, prefix, oid, version, tables, refused,
        parts[] = installation.choices.iter().map(part),
        actions[] = installation.actions.iter().map(action),
    )
}

/// `refused` is why the server cannot parse or plan its statement.
fn action(tried: &Rehearsal) -> impl Json {
    object!(action = tried.kind, query = tried.number, refused = tried.outcome.as_ref().err())
}

fn part(choice: &QueryChoice) -> impl Json {
    object!(
        choice;
        part,
        query = choice.used().map(|tried| tried.number),
        tried[] = choice.tried.iter().map(|tried: &Tried| object!(
            tried;
            query = tried.number,
            cost = tried.outcome.as_ref().ok(),
            size,
            rows = tried.reading().map(|once| once.rows),
            seconds = tried.reading().map(|once| once.seconds),
            refused = tried.refusal(),
        )),
    )
}
