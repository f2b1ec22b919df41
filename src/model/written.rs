//! Whether a transaction has written, as far as that is seen from outside.

use super::backend::Backend;
use super::lock::{LockMode, LockType};
use super::wait_graph::{Party, WaitGraph};

/// Whether it has a transaction id, and not merely for the lock that it waits for: who asks for `AccessExclusiveLock` on a relation gets one before the
/// lock (`LogAccessExclusiveLockPrepare`, called by `LockAcquireExtended` in `src/backend/storage/lmgr/lock.c`), so that an
/// ALTER TABLE that waits in the first statement of its transaction has one and may have changed nothing.
pub fn has_written(graph: &WaitGraph, backend: &Backend) -> bool {
    backend.backend_xid.is_some() && !(is_first_statement(backend) && awaits_relation(graph, backend.pid))
}

/// Both are the start of the same message of the client (`StartTransaction` takes the statement's).
fn is_first_statement(backend: &Backend) -> bool {
    backend.xact_start.is_some() && backend.xact_start == backend.query_start
}

fn awaits_relation(graph: &WaitGraph, pid: i32) -> bool {
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
    fn a_transaction_id_for_the_lock_that_is_awaited_is_no_write() {
        let written = |mode: LockMode, began: f64| {
            let mut b = Builder::default();
            b.session(1, "app@web", State::Active, 5.0, "SELECT 1");
            b.lock(1, relation(9), LockMode::AccessShare, None);
            let waiter = b.session(2, "ops@psql", State::Active, 60.0, "ALTER TABLE t ADD x int");
            waiter.backend_xid = Some(787);
            (waiter.query_start, waiter.xact_start) = (Some(at(-60.0)), Some(at(-began)));
            b.lock(2, relation(9), mode, Some(60.0));
            let view = b.view();
            let backend = view.snapshot.as_ref().unwrap().backend(2).unwrap().clone();
            has_written(&view.graph, &backend)
        };
        assert!(!written(LockMode::AccessExclusive, 60.0));
        assert!(written(LockMode::AccessExclusive, 90.0), "it is not its first statement");
        assert!(written(LockMode::Exclusive, 60.0), "that lock brings none");
    }
}
