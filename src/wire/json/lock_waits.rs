use super::object::{self, Json, Object, Writer, object};
use super::readable;
use crate::model::lock::LockTag;
use crate::model::lock_waits;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;

/// Waits that locktop has seen since it started, together with waits that were counted independently of locktop.
pub(super) fn lock_waits(view: &View, snapshot: &Snapshot) -> impl Json {
    let waits = &*view.lock_waits;
    object!(
        waits;
        since,
        locks[] = waits.locks.iter().map(|lock| object!(
            lock;
            ..locked(snapshot, &lock.tag, &lock.name),
            waiting,
            waits,
            total,
            longest,
            longest_mode,
            first_seen = lock.first,
            last_seen = lock.last,
        )),
        forgotten,
        counted[] = snapshot.systems.contended.iter().flat_map(|table| {
            readable(&table.section).iter().map(move |row| object!(
                row;
                table = table.source.name,
                ..locked(snapshot, &row.tag, &lock_waits::name(snapshot, &view.lock_names, None, &row.tag)),
                waits,
                total,
                longest,
                longest_mode,
                first_seen = row.first,
                last_seen = row.last,
            ))
        }),
    )
}

fn locked(snapshot: &Snapshot, tag: &LockTag, name: &str) -> Object<impl Fn(&mut Writer) -> object::Result> {
    let names = &snapshot.names;
    object!(
        name = name,
        locktype = tag.locktype(),
        database = tag.database(),
        database_name = tag.database().and_then(|oid| names.databases.get(&oid)),
        relation = tag.relation(),
        relation_name = names.relation(tag),
        key = tag.advisory_key(),
    )
}

pub(super) fn workers(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let rows = snapshot
        .systems
        .workers
        .iter()
        .flat_map(|table| readable(&table.section).iter().map(|worker| (&table.source.name, worker)));
    rows.filter(|(_, worker)| worker.lives(snapshot, &view.index)).map(|(table, worker)| {
        let takes = [("tasks", worker.takes_tasks), ("queue", worker.takes_items)];
        object!(
            worker;
            table = table,
            worker_id = worker.name,
            pid,
            backend_start = worker.start,
            takes[] = takes.iter().filter(|(_, takes)| *takes).map(|(name, _)| *name),
            types = worker.types(),
            announced_at,
        )
    })
}
