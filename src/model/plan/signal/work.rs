//! What a session works on.

use crate::model::lease::LeaseRow;
use crate::model::plan::look::Ground;
use crate::model::plan::{Target, What};
use crate::model::task::TaskRow;
use crate::model::work_queue::ItemRow;

/// The tasks that run by the log and whose key the session holds.
pub(super) fn tasks<'a>(ground: &Ground<'a>, pid: i32) -> impl Iterator<Item = &'a TaskRow> {
    let rows = ground.look.view.tasks.rows.iter();
    rows.filter(move |row| row.holder == Some(pid) && row.execution.is_some())
}

/// The items of the queue that it works on.
pub(super) fn items<'a>(ground: &Ground<'a>, pid: i32) -> impl Iterator<Item = &'a ItemRow> {
    ground.look.view.queue.rows.iter().filter(move |row| row.pid == Some(pid))
}

/// The leases that it has.
pub(super) fn leases<'a>(ground: &Ground<'a>, pid: i32) -> impl Iterator<Item = &'a LeaseRow> {
    let rows = ground.look.view.leases.rows.iter();
    rows.filter(move |row| row.owner_pid == Some(pid) && row.owner_alive == Some(true))
}

/// What has to be typed to end a session that owns a task, an item or a lease: its process id.
pub(super) fn owner(ground: &Ground<'_>, target: &Target) -> Option<String> {
    let What::Session(session) = &target.what else { return None };
    let pid = session.pid;
    let owns = tasks(ground, pid).next().is_some()
        || items(ground, pid).next().is_some()
        || leases(ground, pid).next().is_some();
    owns.then(|| pid.to_string())
}
