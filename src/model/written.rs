use super::backend::Backend;
use super::lock::{LockMode, LockType};
use super::wait_graph::{Party, WaitGraph};

/// Knowledge about the writes of a transaction. A transaction ID proves no write: `SELECT … FOR UPDATE` assigns one, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    No,
    /// It has one, perhaps only for the lock that it waits for: a request for `AccessExclusiveLock` on a relation assigns one
    /// before the lock (`LogAccessExclusiveLockPrepare`, called by `LockAcquireExtended` in
    /// `src/backend/storage/lmgr/lock.c`).
    ForLock,
    /// It has a transaction ID.
    Maybe,
}

pub fn written(graph: &WaitGraph, backend: &Backend) -> Written {
    match backend.backend_xid {
        None => Written::No,
        Some(_) if awaits_whole_relation(graph, backend.pid) => Written::ForLock,
        Some(_) => Written::Maybe,
    }
}

pub(super) fn awaits_whole_relation(graph: &WaitGraph, pid: i32) -> bool {
    let wait = graph.wait_of(Party::Backend(pid));
    wait.is_some_and(|(queue, place)| {
        let mode = queue.waiters.get(place).map(|waiter| waiter.mode);
        queue.tag.locktype() == LockType::Relation && mode == Some(LockMode::AccessExclusive)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backend::State;
    use crate::sample::{Builder, at, relation};

    #[test]
    fn a_transaction_id_may_be_only_for_the_lock_that_is_awaited() {
        let written = |mode: LockMode, xid: Option<u32>| {
            let mut b = Builder::default();
            b.session(1, "app@web", State::Active, 5.0, "SELECT 1");
            b.lock(1, relation(9), LockMode::AccessShare, None);
            // An explicit BEGIN came before: the transaction is older than its statement.
            let waiter = b.session(2, "ops@psql", State::Active, 60.0, "ALTER TABLE t ADD x int");
            (waiter.backend_xid, waiter.xact_start) = (xid, Some(at(-90.0)));
            b.lock(2, relation(9), mode, Some(60.0));
            let view = b.view();
            let backend = view.snapshot.as_ref().unwrap().backend(2).unwrap().clone();
            written(&view.graph, &backend)
        };
        assert_eq!(written(LockMode::AccessExclusive, Some(787)), Written::ForLock);
        assert_eq!(written(LockMode::Exclusive, Some(787)), Written::Maybe, "that lock brings none");
        assert_eq!(written(LockMode::AccessExclusive, None), Written::No);
    }
}
