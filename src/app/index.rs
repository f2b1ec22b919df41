//! An index of the rows of a view, built once per view. The snapshot has its own index.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::blame::Shown;
use crate::model::lease::LeaseId;
use crate::model::snapshot::Snapshot;
use crate::model::task::TaskId;
use crate::model::view::View;
use crate::model::work_queue::ItemId;

#[derive(Debug, Clone, Default)]
pub struct ViewIndex {
    pub(super) tasks: FxHashMap<(TaskId, Option<i64>), u32>,
    pub(super) leases: FxHashMap<LeaseId, u32>,
    pub(super) items: FxHashMap<ItemId, u32>,
    /// The lines of the Blame screen, computed when it is shown.
    pub(super) blame: Shown,
    /// The line about requests that do not wait, computed when the server is quiet.
    pub(super) attempts: OnceLock<Option<String>>,
    /// Something on the server belongs to a database other than the connected one.
    pub(super) other_database: bool,
}

fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl ViewIndex {
    pub fn of(view: &View) -> Self {
        let mut index = Self::default();
        for (at, row) in view.tasks.rows.iter().enumerate() {
            index.tasks.insert((row.task, row.again), position(at));
        }
        for (at, row) in view.queue.rows.iter().enumerate() {
            index.items.insert(row.id, position(at));
        }
        for (at, row) in view.leases.rows.iter().enumerate() {
            index.leases.insert(row.id, position(at));
        }
        let Some(snapshot) = view.snapshot.as_deref() else { return index };
        index.other_database = has_other_database(snapshot);
        index
    }
}

fn has_other_database(snapshot: &Snapshot) -> bool {
    let Some(server) = snapshot.server() else { return true };
    let backends = snapshot.backends.last_rows().iter().filter_map(|backend| backend.datid);
    let locks = snapshot.locks.last_rows().iter().filter_map(|lock| lock.tag.database());
    let mut prepared = snapshot.prepared.last_rows().iter().filter_map(|row| row.database.as_deref());
    backends.chain(locks).any(|oid| oid != 0 && oid != server.datid)
        || prepared.any(|database| *database != *server.database)
}
