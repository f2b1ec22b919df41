//! The rows behind waits for a transaction. A session that waits to change a row changed by another session waits for that
//! session's transaction, and holds the row's tuple lock meanwhile (`src/backend/access/heap/README.tuplock` of the
//! server).

use rustc_hash::FxHashMap;

use super::lock::{LockTag, LockType};
use super::snapshot::Snapshot;
use super::wait_graph::WaitGraph;

/// The held tuple locks, by their holder; empty if no session waits for a transaction.
#[derive(Debug, Clone, Default)]
pub struct AwaitedRows {
    tuples: FxHashMap<i32, LockTag>,
}

impl AwaitedRows {
    pub fn of(snapshot: &Snapshot, graph: &WaitGraph) -> Self {
        if !graph.queues.iter().any(|queue| queue.tag.locktype() == LockType::TransactionId) {
            return Self::default();
        }
        let tuples = snapshot.locks.last_rows().iter().filter(|lock| lock.tag.locktype() == LockType::Tuple);
        let held = tuples.filter(|lock| lock.granted).filter_map(|lock| Some((lock.pid?, lock.tag)));
        Self { tuples: held.collect() }
    }

    /// What `waiter` waits for: the row if its tuple lock shows it, otherwise the awaited lock itself.
    pub fn awaited<'a>(&'a self, tag: &'a LockTag, waiter: i32) -> &'a LockTag {
        match tag.locktype() {
            LockType::TransactionId => self.tuples.get(&waiter).unwrap_or(tag),
            _ => tag,
        }
    }
}
