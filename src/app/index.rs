//! Finding things in a view without searching: built once a view.

use rustc_hash::FxHashMap;

use crate::model::awaited_rows::AwaitedRows;
use crate::model::lease::LeaseId;
use crate::model::lock::LockTag;
use crate::model::prepared::PreparedIndex;
use crate::model::snapshot::Snapshot;
use crate::model::task::TaskId;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;

/// Where things are in a view.
#[derive(Debug, Clone, Default)]
pub struct SnapshotIndex {
    pub(super) backends: FxHashMap<i32, u32>,
    pub(super) queues: FxHashMap<LockTag, u32>,
    pub(super) nodes: FxHashMap<Party, u32>,
    pub(super) roots: FxHashMap<Party, u32>,
    pub(super) prepared: PreparedIndex,
    pub(super) rows: AwaitedRows,
    pub(super) tasks: FxHashMap<(TaskId, Option<i64>), u32>,
    pub(super) leases: FxHashMap<LeaseId, u32>,
    pub(super) items: FxHashMap<ItemId, u32>,
    /// Something on the server is of another database than the one that locktop is connected to.
    pub(super) other_database: bool,
    /// All sessions but locktop's own are of one role.
    pub(super) one_role: bool,
}

fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl SnapshotIndex {
    /// Looks through a view once.
    #[must_use]
    pub fn of(view: &View) -> Self {
        let mut index = Self::default();
        for (at, queue) in view.graph.queues.iter().enumerate() {
            index.queues.insert(queue.tag, position(at));
        }
        for (at, node) in view.graph.tree.nodes.iter().enumerate() {
            index.nodes.insert(node.party, position(at));
        }
        for (at, root) in view.graph.roots.iter().enumerate() {
            index.roots.insert(root.party, position(at));
        }
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
        index.backends.reserve(snapshot.backends.rows.len());
        for (at, backend) in snapshot.backends.rows.iter().enumerate() {
            index.backends.insert(backend.pid, position(at));
        }
        index.other_database = has_other_database(snapshot);
        index.one_role = has_one_role(snapshot);
        index.prepared = PreparedIndex::of(snapshot);
        index.rows = AwaitedRows::of(snapshot, &view.graph);
        index
    }
}

/// Whether all sessions but locktop's own are of one role.
fn has_one_role(snapshot: &Snapshot) -> bool {
    let others =
        snapshot.backends.rows.iter().filter(|backend| backend.application.as_deref() != Some("locktop"));
    let mut roles = others.filter_map(|backend| backend.user.as_deref());
    let first = roles.next();
    roles.all(|role| Some(role) == first)
}

/// Whether a session, a lock or a prepared transaction is of another database than ours.
fn has_other_database(snapshot: &Snapshot) -> bool {
    let Some(server) = snapshot.server() else { return true };
    let backends = snapshot.backends.rows.iter().filter_map(|backend| backend.datid);
    let locks = snapshot.locks.rows.iter().filter_map(|lock| lock.tag.database);
    let mut prepared = snapshot.prepared.rows.iter().filter_map(|row| row.database.as_deref());
    backends.chain(locks).any(|oid| oid != 0 && oid != server.datid)
        || prepared.any(|database| *database != *server.database)
}
