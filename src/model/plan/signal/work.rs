//! The work of a session (tasks, items, leases), and the session behind a row of the work queue or of a lease table.
//!
//! A worker takes the next item within moments, in the same session: what ties the session to the row must also be
//! compared.

use crate::model::Timestamp;
use crate::model::finding::Subject;
use crate::model::lease::{LeaseId, LeaseRow};
use crate::model::lock::{LockMode, LockTag};
use crate::model::plan::{LeaseHeld, PlanIndex, Refused, Target, TargetKind, WorkAtRisk};
use crate::model::task::TaskRow;
use crate::model::work_queue::{ItemId, ItemRow};
use crate::text;

pub(super) fn tasks<'a>(index: &PlanIndex<'a>, pid: i32) -> impl Iterator<Item = &'a TaskRow> {
    let rows = index.view.tasks.rows.iter();
    rows.filter(move |row| row.holder == Some(pid) && row.execution.is_some())
}

pub(super) fn items<'a>(index: &PlanIndex<'a>, pid: i32) -> impl Iterator<Item = &'a ItemRow> {
    index.view.queue.rows.iter().filter(move |row| row.pid == Some(pid))
}

/// Leases that the session has by their rows, while it is connected.
pub(super) fn leases<'a>(index: &PlanIndex<'a>, pid: i32) -> impl Iterator<Item = &'a LeaseRow> {
    let rows = index.view.leases.rows.iter();
    rows.filter(move |row| row.owner_pid == Some(pid) && row.owner_alive == Some(true))
}

/// The execution behind a row of a task, if it is in one of locktop's own tables.
pub(super) fn of_task(index: &PlanIndex<'_>, row: &TaskRow) -> Option<WorkAtRisk> {
    let is_own = row.set(index.snapshot)?.tables.own_keys;
    let execution = row.execution(index.snapshot).filter(|_| is_own)?;
    let session = (execution.backend_pid?, execution.backend_start?);
    let holder = index.backend(row.holder?)?;
    (session == (holder.pid, holder.backend_start?))
        .then_some(WorkAtRisk::Execution(row.task, Some(execution.id)))
}

/// The attempt behind a row of the queue, if it is in one of locktop's own tables.
pub(super) fn of_item(index: &PlanIndex<'_>, row: &ItemRow) -> Option<WorkAtRisk> {
    let is_own = index.snapshot.sources.items.get(row.table)?.source.own_keys;
    let item = row.item(index.snapshot).filter(|_| is_own)?;
    let worker = index.backend(row.pid?)?;
    let session = (item.backend_pid?, item.backend_start?);
    (session == (worker.pid, worker.backend_start?)).then_some(WorkAtRisk::Item(row.id, Some(item.attempt?)))
}

/// The work of a session by locktop's own tables. A session with the same execution or attempt has the same client,
/// whatever it has run since: a worker that acquires a key for the next one records that in the same transaction.
pub(super) fn of(index: &PlanIndex<'_>, pid: i32) -> Option<WorkAtRisk> {
    let task = || tasks(index, pid).find_map(|row| of_task(index, row));
    task().or_else(|| items(index, pid).find_map(|row| of_item(index, row)))
}

pub(super) fn is_on(index: &PlanIndex<'_>, pid: i32, work: &WorkAtRisk) -> bool {
    tasks(index, pid).any(|row| of_task(index, row).as_ref() == Some(work))
        || items(index, pid).any(|row| of_item(index, row).as_ref() == Some(work))
}

/// What must be typed to terminate a session that owns a task, an item or a lease: its process id.
pub(super) fn owner(index: &PlanIndex<'_>, target: &Target) -> Option<String> {
    let TargetKind::Session(session) = &target.what else { return None };
    let pid = session.pid;
    let owns = tasks(index, pid).next().is_some()
        || items(index, pid).next().is_some()
        || leases(index, pid).next().is_some();
    owns.then(|| pid.to_string())
}

#[derive(Debug, Clone)]
pub(super) struct SelectedSession {
    pub(super) pid: i32,
    pub(super) start: Option<Timestamp>,
    pub(super) holds: Option<(LockTag, LockMode)>,
    pub(super) work: Option<WorkAtRisk>,
    /// The parallel worker that this session replaces as its leader.
    pub(super) via: Option<i32>,
    pub(super) lease: Option<LeaseHeld>,
}

impl SelectedSession {
    pub(super) fn new(pid: i32, start: Option<Timestamp>) -> Self {
        Self { pid, start, holds: None, work: None, via: None, lease: None }
    }
}

/// The session that works on an item. It must still hold the key of the item.
pub(super) fn session_of_item(index: &PlanIndex<'_>, id: ItemId) -> Result<SelectedSession, Refused> {
    let row = index.view.item(id);
    let refused = |reason: &str| Refused::new(format!("item {}", id.id), Subject::Item(id), reason);
    let Some((row, pid)) = row.and_then(|row| Some((row, row.pid?))) else {
        return Err(refused("its session is not known"));
    };
    // While the writes of its transaction are not visible, the lock of that transaction ties the session to the row.
    let holds = row.row_lock.or(row.tag).map(|tag| (tag, LockMode::Exclusive));
    if holds.is_none_or(|held| !index.may_hold(pid, held)) {
        return Err(refused(&format!(
            "{pid} does not hold its key, so it could work on another item by \
             then; use K on the session itself"
        )));
    }
    let own_keys = index.snapshot.sources.items.get(row.table).is_some_and(|table| table.source.own_keys);
    let start = row.item(index.snapshot).and_then(|item| item.backend_start).filter(|_| own_keys);
    Ok(SelectedSession { holds, work: of_item(index, row), ..SelectedSession::new(pid, start) })
}

/// The session that has a lease. The signalling statement cannot compare the lease, so the transaction must be the same:
/// changes that the session makes to the lease in it do not count before it ends.
pub(super) fn session_of_lease(index: &PlanIndex<'_>, id: LeaseId) -> Result<SelectedSession, Refused> {
    let row = index.view.lease(id);
    let name = row.map_or_else(|| "lease".to_owned(), |row| format!("lease {}", row.name));
    let refused = |reason: &str| Refused::new(text::one_line(&name), Subject::Lease(id), reason);
    let alive = row.filter(|row| row.owner_alive == Some(true));
    let Some((row, pid)) = alive.and_then(|row| Some((row, row.owner_pid?))) else {
        return Err(refused("its session is not known; U ends the lease"));
    };
    if index.backend(pid).is_some_and(|backend| backend.xact_start.is_none()) {
        return Err(refused(&format!(
            "{pid} has no open transaction, so it may no longer hold it by then; U ends the \
             lease, or use K on the session itself"
        )));
    }
    Ok(SelectedSession { lease: Some(held(row)), ..SelectedSession::new(pid, None) })
}

pub(super) fn held(row: &LeaseRow) -> LeaseHeld {
    LeaseHeld { id: row.id, pid: row.owner_pid, owner: row.owner.clone(), token: row.token }
}

/// Whether the lease has another owner by now, or none; a renewal changes nothing.
pub(super) fn is_lost(index: &PlanIndex<'_>, lease: &LeaseHeld) -> bool {
    index.view.lease(lease.id).is_none_or(|row| held(row) != *lease)
}
