//! The order of a table when the user chose none: what needs somebody comes first.

use std::cmp::Reverse;

use super::index::Scene;
use super::screen::Pane;
use super::table::Row;
use crate::model::backend::{Backend, State};
use crate::model::id_generator;
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::namespace::WORKERS;
use crate::model::rate_limit::{self, LimitState};
use crate::model::task::{TaskRow, TaskState};
use crate::model::wait_graph::Party;

/// Sorts rows by urgency. Ties fall to what does not change between two polls, so that rows do not jump.
pub(super) fn by_urgency(pane: Pane, scene: &Scene<'_>, rows: &mut Vec<Row>) {
    match pane {
        // They come in their order.
        Pane::Chains | Pane::Events => {}
        Pane::Advisory | Pane::Locks => *rows = locks(scene, rows),
        Pane::Tasks => rows.sort_by_cached_key(|row| match row {
            Row::Task(at) => scene.view.tasks.rows.get(*at as usize).map(|row| task_key(scene, row)),
            _ => None,
        }),
        Pane::Queue => rows.sort_by_cached_key(|row| match row {
            Row::Item(at) => scene.view.queue.rows.get(*at as usize).map(|row| row.urgency(scene.snapshot)),
            _ => None,
        }),
        Pane::Limits => rows.sort_by_cached_key(|row| limit_key(scene, *row)),
        Pane::Generators => rows.sort_by_cached_key(|row| generator_key(scene, *row)),
        Pane::Leases => {
            let lease = |row: &Row| match row {
                Row::Lease(at) => scene.view.leases.rows.get(*at as usize),
                _ => None,
            };
            rows.sort_by(|a, b| match (lease(a), lease(b)) {
                (Some(a), Some(b)) => a.urgency(b),
                (a, b) => a.is_none().cmp(&b.is_none()),
            });
        }
        Pane::Backends => rows.sort_by_cached_key(|row| match row {
            Row::Backend(at) => {
                scene.snapshot.backends.rows.get(*at as usize).map(|row| backend_key(scene, row))
            }
            _ => None,
        }),
    }
}

/// What a row of `pg_locks` is sorted by, the index of the row last.
type LockKey = (u128, i64, Option<i32>, u32);

/// Locks with the longest queues first, then the others by what is locked; within a lock its holders, then its queue.
///
/// There are tens of thousands of locks, and few are awaited: all are sorted by what is locked, and the rows of each
/// queue are found among them.
fn locks(scene: &Scene<'_>, rows: &[Row]) -> Vec<Row> {
    let all = &scene.snapshot.locks.rows;
    let key = |row: &Row| match row {
        Row::Lock(at) => all.get(*at as usize).map(|lock| lock_key(lock, *at)),
        _ => None,
    };
    let mut keys: Vec<LockKey> = rows.iter().filter_map(key).collect();
    keys.sort_unstable();
    let mut queues: Vec<_> = scene.view.graph.queues.iter().collect();
    queues.sort_by_key(|queue| (Reverse(queue.waiters.len()), queue.tag));
    let mut sorted = Vec::with_capacity(keys.len());
    let mut awaited = vec![false; keys.len()];
    for queue in queues {
        let tag = packed(&queue.tag);
        let first = keys.partition_point(|key| key.0 < tag);
        for (key, awaited) in keys.iter().zip(&mut awaited).skip(first).take_while(|(key, _)| key.0 == tag) {
            if !std::mem::replace(awaited, true) {
                sorted.push(Row::Lock(key.3));
            }
        }
    }
    sorted.extend(keys.iter().zip(awaited).filter(|(_, awaited)| !awaited).map(|(key, _)| Row::Lock(key.3)));
    sorted
}

fn lock_key(lock: &Lock, at: u32) -> LockKey {
    let since = match lock.wait_start {
        _ if lock.granted => i64::MIN,
        Some(start) => start.timestamp_micros(),
        None => i64::MAX,
    };
    (packed(&lock.tag), since, lock.pid, at)
}

/// What is locked as one number, which is quick to compare: the type, the database, and the parts that locks of this
/// type have. The names of workers come last: each worker holds its own, and nobody looks for that.
fn packed(tag: &LockTag) -> u128 {
    let of_worker =
        tag.objsubid == Some(1) && tag.classid.is_some_and(|high| high >> 16 == u32::from(WORKERS));
    let virtualxid = tag.virtualxid.map(|xid| (xid.proc_number.cast_unsigned(), xid.local_xid));
    let upper = tag.relation.or(tag.classid).or(tag.transactionid).or(virtualxid.map(|xid| xid.0));
    let lower = tag.page.or(tag.objid).or(virtualxid.map(|xid| xid.1));
    let last = tag.tuple.or(tag.objsubid);
    u128::from(of_worker && tag.locktype == LockType::Advisory) << 120
        | u128::from(tag.locktype as u8) << 112
        | u128::from(tag.database.unwrap_or_default()) << 80
        | u128::from(upper.unwrap_or_default()) << 48
        | u128::from(lower.unwrap_or_default()) << 16
        | u128::from(last.unwrap_or_default())
}

/// Who blocks most, then who is in the oldest transaction, then who works, then the idle, then the server's own.
fn backend_key(scene: &Scene<'_>, backend: &Backend) -> (u32, u8, i64, i32) {
    let party = Party::Backend(backend.group());
    let blocked =
        scene.node(party).map_or(0, |(_, node)| scene.root(party).map_or(node.below, |root| root.blocked));
    let class = match backend.state {
        _ if backend.xact_start.is_some() => 0,
        Some(State::Idle) => 2,
        Some(_) => 1,
        None => 3,
    };
    let since =
        backend.xact_start.or(backend.state_change).map_or(i64::MAX, |start| start.timestamp_micros());
    (u32::MAX - blocked, class, since, backend.pid)
}

/// By how urgent the state is; within it what began first, or is due first.
fn task_key(scene: &Scene<'_>, row: &TaskRow) -> (TaskState, i64, crate::model::task::TaskId, Option<i64>) {
    let began = row.execution(scene.snapshot).and_then(|execution| execution.started_at);
    let due = || row.schedule(scene.snapshot).and_then(|task| task.next_run_at);
    let since = began.or_else(due).map_or(i64::MAX, |at| at.timestamp_micros());
    (row.state, since, row.task, row.again)
}

/// What is full first, then what is nearest to its limit.
fn limit_key(scene: &Scene<'_>, row: Row) -> Option<(LimitState, i64, std::sync::Arc<str>)> {
    let Row::Limit(table, at) = row else { return None };
    let row = rate_limit::row(scene.snapshot, table as usize, at as usize)?;
    let share = row.limit.share().map_or(0, thousandths);
    // Among those without a limit the busiest.
    let most = if row.limit.max_requests.is_some() { share } else { row.limit.count.unwrap_or_default() };
    Some((row.state, most.saturating_neg(), row.limit.key.clone()))
}

/// What is ahead of the clock first, then the latest id.
fn generator_key(scene: &Scene<'_>, row: Row) -> Option<(i64, i64)> {
    let Row::Generator(table, at) = row else { return None };
    let row = id_generator::row(scene.snapshot, table as usize, at as usize)?;
    let ahead = row.ahead.filter(|ahead| *ahead > 0.1).map_or(0, thousandths);
    Some((ahead.saturating_neg(), row.generator.worker))
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn thousandths(number: f64) -> i64 {
    (number * 1000.0) as i64
}
