//! The order of a table when the user chose none: what needs somebody comes first.

use super::index::Scene;
use super::screen::Pane;
use super::table::Row;
use crate::model::backend::{Backend, State};
use crate::model::lock::Lock;
use crate::model::task::{TaskRow, TaskState};
use crate::model::wait_graph::Party;

/// Sorts rows by urgency. Ties fall to what does not change between two polls, so that rows do not jump.
pub(super) fn by_urgency(pane: Pane, scene: &Scene<'_>, rows: &mut [Row]) {
    match pane {
        Pane::Chains => {}
        Pane::Advisory | Pane::Locks => rows.sort_by_cached_key(|row| match row {
            Row::Lock(at) => scene.snapshot.locks.rows.get(*at as usize).map(|lock| lock_key(scene, lock)),
            _ => None,
        }),
        Pane::Tasks => rows.sort_by_cached_key(|row| match row {
            Row::Task(at) => scene.view.tasks.rows.get(*at as usize).map(|row| task_key(scene, row)),
            _ => None,
        }),
        Pane::Backends => rows.sort_by_cached_key(|row| match row {
            Row::Backend(at) => {
                scene.snapshot.backends.rows.get(*at as usize).map(|row| backend_key(scene, row))
            }
            _ => None,
        }),
    }
}

/// Locks with the longest queues first; within a lock its holders, then its queue. Then the longest held.
fn lock_key(scene: &Scene<'_>, lock: &Lock) -> (usize, crate::model::lock::LockTag, i64, Option<i32>) {
    let waiters = scene.queue(&lock.tag).map_or(0, |queue| queue.waiters.len());
    let since = if lock.granted {
        i64::MIN
    } else {
        lock.wait_start.map_or(i64::MAX, |start| start.timestamp_micros())
    };
    (usize::MAX - waiters, lock.tag, since, lock.pid)
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
