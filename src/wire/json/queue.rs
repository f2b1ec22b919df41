use serde::Serialize;

use super::rows::{Time, exact};
use crate::model::id_generator;
use crate::model::rate_limit;
use crate::model::snapshot::Snapshot;
use crate::model::systems::TableRows;
use crate::model::view::View;
use crate::model::work_queue::{Count, Depth};

/// Items by state over all tables; none if a table could not be read. `more` lists the states with more items than were
/// counted.
#[derive(Debug, Serialize)]
pub(super) struct WorkQueue {
    pending: Option<u64>,
    processing: Option<u64>,
    completed: Option<u64>,
    failed: Option<u64>,
    oldest_pending_at: Option<Time>,
    completed_per_minute: Option<u64>,
    more: Vec<&'static str>,
}

pub(super) fn depth(snapshot: &Snapshot) -> WorkQueue {
    let counts = &snapshot.systems.counts;
    let depth = Depth::of(counts.iter().filter(|table| is_read(table)));
    let is_known = snapshot.tables(counts).reason().is_none() && counts.iter().all(is_read);
    let number = |count: Count| is_known.then_some(count.count);
    let states = [
        ("pending", depth.pending),
        ("processing", depth.processing),
        ("completed", depth.completed),
        ("failed", depth.failed),
    ];
    let more = states.iter().filter(|(_, count): &&(_, Count)| count.is_more).map(|(name, _)| *name);
    WorkQueue {
        pending: number(depth.pending),
        processing: number(depth.processing),
        completed: number(depth.completed),
        failed: number(depth.failed),
        oldest_pending_at: depth.oldest_pending_at.map(Time).filter(|_| is_known),
        completed_per_minute: depth.per_minute.filter(|_| is_known),
        more: more.collect(),
    }
}

fn is_read<T>(table: &TableRows<T>) -> bool {
    table.section.is_known()
}

/// An item in progress or set aside, or one of the oldest pending ones.
#[derive(Debug, Serialize)]
pub(super) struct Item<'a> {
    table: &'a str,
    id: i64,
    id_text: String,
    task_name: Option<&'a str>,
    status: Option<&'a str>,
    worker_id: Option<&'a str>,
    created_at: Option<Time>,
    started_at: Option<Time>,
    completed_at: Option<Time>,
    attempt: Option<i64>,
    max_attempts: Option<i64>,
    heartbeat_at: Option<Time>,
    due_at: Option<Time>,
    timeout: Option<f64>,
    backend_pid: Option<i32>,
    error: Option<&'a str>,
    state: &'static str,
}

pub(super) fn items<'a>(view: &View, snapshot: &'a Snapshot) -> Vec<Item<'a>> {
    let rows = view.queue.rows.iter();
    rows.filter_map(|row| {
        let table = snapshot.systems.items.get(row.table).filter(|table| is_read(table))?;
        let item = row.item(snapshot)?;
        Some(Item {
            table: &table.source.name,
            id: item.id,
            id_text: exact(item.id),
            task_name: item.name.as_deref(),
            status: item.status.as_deref(),
            worker_id: item.worker.as_deref(),
            created_at: item.created_at.map(Time),
            started_at: item.started_at.map(Time),
            completed_at: item.completed_at.map(Time),
            attempt: item.attempt,
            max_attempts: item.max_attempts,
            heartbeat_at: item.heartbeat_at.map(Time),
            due_at: item.due_at.map(Time),
            timeout: item.timeout,
            backend_pid: item.backend_pid,
            error: item.error.as_deref(),
            state: row.state.certain(),
        })
    })
    .collect()
}

#[derive(Debug, Serialize)]
pub(super) struct Limit<'a> {
    table: &'a str,
    key: &'a str,
    count: Option<i64>,
    max_requests: Option<i64>,
    window_start: Option<Time>,
    expires_at: Option<Time>,
    state: &'static str,
}

pub(super) fn limits(snapshot: &Snapshot) -> Vec<Limit<'_>> {
    let is_old = |source: &str| {
        let mut tables = snapshot.systems.limits.iter();
        tables.any(|table| !is_read(table) && *table.source.name == *source)
    };
    let rows = rate_limit::rows(snapshot).filter(|row| !is_old(row.source));
    rows.map(|row| Limit {
        table: row.source,
        key: &row.limit.key,
        count: row.limit.count,
        max_requests: row.limit.max_requests,
        window_start: row.limit.window_start.map(Time),
        expires_at: row.limit.expires_at.map(Time),
        state: row.state.as_str(),
    })
    .collect()
}

/// An id generator. `ahead` is by how many seconds its last id is ahead of the server's clock; a negative value is normal.
#[derive(Debug, Serialize)]
pub(super) struct Generator<'a> {
    table: &'a str,
    worker_id: i64,
    sequence: Option<i64>,
    last_timestamp: Option<i64>,
    last_at: Option<Time>,
    ahead: Option<f64>,
}

pub(super) fn generators(snapshot: &Snapshot) -> Vec<Generator<'_>> {
    let is_old = |table: u32| {
        let mut tables = snapshot.systems.generators.iter();
        tables.any(|other| !is_read(other) && other.source.table == table)
    };
    let rows = id_generator::rows(snapshot).filter(|row| !is_old(row.id.table));
    rows.map(|row| Generator {
        table: row.source,
        worker_id: row.generator.worker,
        sequence: row.generator.sequence,
        last_timestamp: row.generator.last_timestamp,
        last_at: row.generator.last_at().map(Time),
        ahead: row.ahead,
    })
    .collect()
}

/// What the functions of one schema refused since counting began.
#[derive(Debug, Serialize)]
pub(super) struct Refused<'a> {
    table: &'a str,
    rate_limit: Option<i64>,
    transfer: Option<i64>,
    lease: Option<i64>,
    task: Option<i64>,
}

pub(super) fn refusals(snapshot: &Snapshot) -> Vec<Refused<'_>> {
    let tables = snapshot.systems.refusals.iter().filter(|table| is_read(table));
    let rows = tables.flat_map(|table| table.section.last_rows().iter().map(move |row| (table, row)));
    rows.map(|(table, row)| Refused {
        table: &table.source.name,
        rate_limit: row.rate_limit,
        transfer: row.transfer,
        lease: row.lease,
        task: row.task,
    })
    .collect()
}
