use serde::Serialize;

use super::readable;
use super::rows::{Key, Time};
use crate::model::lock::{LockMode, LockTag};
use crate::model::lock_waits;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;

/// Waits that locktop has seen since it started, together with waits that were counted independently of locktop.
#[derive(Debug, Serialize)]
pub(super) struct LockWaits<'a> {
    since: Option<Time>,
    locks: Vec<Watched<'a>>,
    forgotten: u64,
    counted: Vec<Counted<'a>>,
}

#[derive(Debug, Serialize)]
struct Locked<'a> {
    name: String,
    locktype: &'static str,
    database: Option<u32>,
    database_name: Option<&'a str>,
    relation: Option<u32>,
    relation_name: Option<&'a str>,
    key: Option<Key>,
}

#[derive(Debug, Serialize)]
struct Watched<'a> {
    #[serde(flatten)]
    locked: Locked<'a>,
    waiting: u32,
    waits: u64,
    total: f64,
    longest: f64,
    longest_mode: &'static str,
    first_seen: Time,
    last_seen: Time,
}

#[derive(Debug, Serialize)]
struct Counted<'a> {
    table: &'a str,
    #[serde(flatten)]
    locked: Locked<'a>,
    waits: u64,
    total: f64,
    longest: f64,
    longest_mode: Option<&'static str>,
    first_seen: Option<Time>,
    last_seen: Option<Time>,
}

pub(super) fn lock_waits<'a>(view: &'a View, snapshot: &'a Snapshot) -> LockWaits<'a> {
    let waits = &view.lock_waits;
    let locks = waits.locks.iter().map(|lock| Watched {
        locked: locked(snapshot, &lock.tag, lock.name.to_string()),
        waiting: lock.waiting,
        waits: lock.waits,
        total: lock.total,
        longest: lock.longest,
        longest_mode: lock.longest_mode.as_str(),
        first_seen: Time(lock.first),
        last_seen: Time(lock.last),
    });
    let counted = snapshot.systems.contended.iter().flat_map(|table| {
        readable(&table.section).iter().map(|row| {
            let name = lock_waits::name(snapshot, &view.lock_names, None, &row.tag);
            Counted {
                table: &table.source.name,
                locked: locked(snapshot, &row.tag, name.to_string()),
                waits: row.waits,
                total: row.total,
                longest: row.longest,
                longest_mode: row.longest_mode.map(LockMode::as_str),
                first_seen: row.first.map(Time),
                last_seen: row.last.map(Time),
            }
        })
    });
    LockWaits {
        since: waits.since.map(Time),
        locks: locks.collect(),
        forgotten: waits.forgotten,
        counted: counted.collect(),
    }
}

fn locked<'a>(snapshot: &'a Snapshot, tag: &LockTag, name: String) -> Locked<'a> {
    let names = &snapshot.names;
    Locked {
        name,
        locktype: tag.locktype().as_str(),
        database: tag.database(),
        database_name: tag.database().and_then(|oid| names.databases.get(&oid)).map(|name| &**name),
        relation: tag.relation(),
        relation_name: names.relation(tag).map(|name| &**name),
        key: tag.advisory_key().map(Into::into),
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Taker<'a> {
    table: &'a str,
    worker_id: Option<&'a str>,
    pid: i32,
    backend_start: Option<Time>,
    takes: Vec<&'static str>,
    types: Option<Vec<String>>,
    announced_at: Option<Time>,
}

pub(super) fn workers<'a>(view: &View, snapshot: &'a Snapshot) -> Vec<Taker<'a>> {
    let rows = snapshot
        .systems
        .workers
        .iter()
        .flat_map(|table| readable(&table.section).iter().map(|worker| (&*table.source.name, worker)));
    rows.filter(|(_, worker)| worker.lives(snapshot, &view.index))
        .map(|(table, worker)| {
            let takes = [("tasks", worker.takes_tasks), ("queue", worker.takes_items)];
            Taker {
                table,
                worker_id: worker.name.as_deref(),
                pid: worker.pid,
                backend_start: worker.start.map(Time),
                takes: takes.iter().filter(|(_, takes)| *takes).map(|(name, _)| *name).collect(),
                types: worker.types(),
                announced_at: worker.announced_at.map(Time),
            }
        })
        .collect()
}
