use crate::model::lease::LeaseRow;
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{Stake, Target, TargetKind};
use crate::model::task::TaskRow;
use crate::model::work_queue::ItemRow;

pub(super) fn tasks<'a>(index: &PlanIndex<'a>, pid: i32) -> impl Iterator<Item = &'a TaskRow> {
    let rows = index.context.view.tasks.rows.iter();
    rows.filter(move |row| row.holder == Some(pid) && row.execution.is_some())
}

pub(super) fn items<'a>(index: &PlanIndex<'a>, pid: i32) -> impl Iterator<Item = &'a ItemRow> {
    index.context.view.queue.rows.iter().filter(move |row| row.pid == Some(pid))
}

/// Leases that the session has by their rows, while it is connected.
pub(super) fn leases<'a>(index: &PlanIndex<'a>, pid: i32) -> impl Iterator<Item = &'a LeaseRow> {
    let rows = index.context.view.leases.rows.iter();
    rows.filter(move |row| row.owner_pid == Some(pid) && row.owner_alive == Some(true))
}

/// The execution behind a row of a task, if it is in one of locktop's own tables.
pub(super) fn of_task(index: &PlanIndex<'_>, row: &TaskRow) -> Option<Stake> {
    let is_own = row.set(index.snapshot)?.tables.own_keys;
    let execution = row.execution(index.snapshot).filter(|_| is_own)?;
    let session = (execution.backend_pid?, execution.backend_start?);
    let holder = index.backend(row.holder?)?;
    (session == (holder.pid, holder.backend_start?)).then_some(Stake::Execution(row.task, Some(execution.id)))
}

/// The attempt behind a row of the queue, if it is in one of locktop's own tables.
pub(super) fn of_item(index: &PlanIndex<'_>, row: &ItemRow) -> Option<Stake> {
    let is_own = index.snapshot.systems.items.get(row.table)?.source.own_keys;
    let item = row.item(index.snapshot).filter(|_| is_own)?;
    let worker = index.backend(row.pid?)?;
    let session = (item.backend_pid?, item.backend_start?);
    (session == (worker.pid, worker.backend_start?)).then_some(Stake::Item(row.id, Some(item.attempt?)))
}

/// The work of a session by locktop's own tables. A session with the same execution or attempt has the same client,
/// whatever it has run since: a worker that acquires a key for the next one records that in the same transaction.
pub(super) fn of(index: &PlanIndex<'_>, pid: i32) -> Option<Stake> {
    let task = || tasks(index, pid).find_map(|row| of_task(index, row));
    task().or_else(|| items(index, pid).find_map(|row| of_item(index, row)))
}

pub(super) fn is_on(index: &PlanIndex<'_>, pid: i32, work: &Stake) -> bool {
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
