//! The session behind a row of the work queue or of a table of leases, and by what it is still the one.
//!
//! A worker goes on to the next item within moments, in the same session: what ties the session to the row has to be compared too.

use super::choose::Pick;
use super::work;
use crate::model::finding::Subject;
use crate::model::lease::{LeaseId, LeaseRow};
use crate::model::lock::LockMode;
use crate::model::plan::look::Ground;
use crate::model::plan::{LeaseHeld, Refused};
use crate::model::work_queue::ItemId;
use crate::text;

/// Who works on an item. It has to hold the item's key still.
pub(super) fn of_item(ground: &Ground<'_>, id: ItemId) -> Result<Pick, Refused> {
    let row = ground.look.view.queue.rows.iter().find(|row| row.id == id);
    let refused = |reason: &str| Refused::new(format!("item {}", id.id), Subject::Item(id), reason);
    let Some((row, pid)) = row.and_then(|row| Some((row, row.pid?))) else {
        return Err(refused("no session is known to work on it"));
    };
    let holds = row.tag.map(|tag| (tag, LockMode::Exclusive));
    if holds.is_none_or(|held| !ground.may_hold(pid, held)) {
        return Err(refused(&format!(
            "{pid} does not hold its key, so nothing would tell whether it is on another item by then; \
             K on the session itself ends it"
        )));
    }
    let own_keys = ground.snapshot.systems.items.get(row.table).is_some_and(|table| table.source.own_keys);
    let start = row.item(ground.snapshot).and_then(|item| item.backend_start).filter(|_| own_keys);
    Ok(Pick { holds, work: work::of_item(ground, row), ..Pick::new(pid, start) })
}

/// Who has a lease. The server cannot compare that where it signals: the transaction has to be the same, in which nothing that
/// its session does to the lease counts before it has ended.
pub(super) fn of_lease(ground: &Ground<'_>, id: LeaseId) -> Result<Pick, Refused> {
    let row = row_of(ground, id);
    let name = row.map_or_else(|| "lease".to_owned(), |row| format!("lease {}", row.name));
    let refused = |reason: &str| Refused::new(text::one_line(&name), Subject::Lease(id), reason);
    let alive = row.filter(|row| row.owner_alive == Some(true));
    let Some((row, pid)) = alive.and_then(|row| Some((row, row.owner_pid?))) else {
        return Err(refused("no session is known to have it; U ends the lease"));
    };
    if ground.backend(pid).is_some_and(|backend| backend.xact_start.is_none()) {
        return Err(refused(&format!(
            "{pid} is in no transaction, so nothing would tell whether it still has it by then; U ends the lease, \
             K on the session itself ends that"
        )));
    }
    Ok(Pick { lease: Some(held(row)), ..Pick::new(pid, None) })
}

fn row_of<'a>(ground: &Ground<'a>, id: LeaseId) -> Option<&'a LeaseRow> {
    ground.look.view.leases.rows.iter().find(|row| row.id == id)
}

/// What of a lease stays when it is renewed.
pub(super) fn held(row: &LeaseRow) -> LeaseHeld {
    LeaseHeld { id: row.id, pid: row.owner_pid, owner: row.owner.clone(), token: row.token }
}

/// Whether somebody else has a lease by now, or nobody; a renewal changes nothing.
pub(super) fn is_lost(ground: &Ground<'_>, lease: &LeaseHeld) -> bool {
    row_of(ground, lease.id).is_none_or(|row| held(row) != *lease)
}
