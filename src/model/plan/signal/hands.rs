//! The session behind a row of the work queue or of a lease table, and what ties it to the row.
//!
//! A worker takes the next item within moments, in the same session: what ties the session to the row must also be
//! compared.

use super::selected::SelectedSession;
use super::work;
use crate::model::finding::Subject;
use crate::model::lease::{LeaseId, LeaseRow};
use crate::model::lock::LockMode;
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{LeaseHeld, Refused};
use crate::model::work_queue::ItemId;
use crate::text;

/// The session that works on an item. It must still hold the key of the item.
pub(super) fn of_item(index: &PlanIndex<'_>, id: ItemId) -> Result<SelectedSession, Refused> {
    let row = index.context.view.item(id);
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
    let own_keys = index.snapshot.systems.items.get(row.table).is_some_and(|table| table.source.own_keys);
    let start = row.item(index.snapshot).and_then(|item| item.backend_start).filter(|_| own_keys);
    Ok(SelectedSession { holds, work: work::of_item(index, row), ..SelectedSession::new(pid, start) })
}

/// The session that has a lease. The signalling statement cannot compare the lease, so the transaction must be the same:
/// changes that the session makes to the lease in it do not count before it ends.
pub(super) fn of_lease(index: &PlanIndex<'_>, id: LeaseId) -> Result<SelectedSession, Refused> {
    let row = index.context.view.lease(id);
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
    index.context.view.lease(lease.id).is_none_or(|row| held(row) != *lease)
}
