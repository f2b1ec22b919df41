//! Facts about a session from its locks: whether it keeps one at session level, whether it may have written, and the
//! name that it gives to one.
//!
//! `pg_locks` does not distinguish session-level locks from transaction-level locks. A lock is session-level if its holder
//! is in no transaction, or if another session has waited for it since before the holder's transaction began: a release
//! would have granted it to that session. Behind a pooler in transaction mode, the session then keeps it while it runs the
//! statements of other clients.

use std::cell::OnceCell;

use crate::model::backend::{Backend, State};
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::lock_name::LockNames;
use crate::model::view::SnapshotView;
use crate::model::wait_graph::{Party, WaitGraph};
use crate::model::words;

impl SnapshotView<'_> {
    /// Whether a backend holds this lock at session level, and has begun another statement or transaction since.
    pub fn keeps(self, backend: &Backend, (tag, mode): (LockTag, LockMode)) -> bool {
        let is_client = backend.backend_type.as_deref() == Some("client backend");
        let Some(began) = backend.xact_start.or(backend.query_start) else { return false };
        if !is_client || tag.locktype() != LockType::Advisory {
            return false;
        }
        let own = Party::Backend(backend.group());
        let queue = self.view.index.queue(&self.view.graph, &tag);
        // Several sessions may hold it in Share mode: the release by one grants it to no waiter.
        let waits_longer = mode == LockMode::Exclusive
            && queue.is_some_and(|queue| {
                let mut others = queue.waiters.iter().filter(|waiter| waiter.party != own);
                others.any(|waiter| waiter.wait_start.is_some_and(|since| since < began))
            });
        // A statement about advisory locks may have released it and taken it again.
        let is_unrelated = || {
            backend
                .query
                .as_ref()
                .is_some_and(|query| !query.unredacted().to_ascii_lowercase().contains("advisory"))
        };
        let seen = || self.view.held_since.get(&(backend.pid, tag)).is_some_and(|held| held.seen < began);
        let is_idle = backend.state == Some(State::Idle) && backend.xact_start.is_none();
        waits_longer || is_idle && is_unrelated() && seen()
    }

    /// The session-level lock that a party keeps and that most sessions wait for.
    pub fn kept_key(self, party: Party) -> Option<(LockTag, LockMode)> {
        let is_one = matches!(party, Party::Backend(_)) && self.normal_wait(party).is_none();
        let backend = self.backend(party.pid()).filter(|_| is_one)?;
        self.awaited_key(party).filter(|key| self.keeps(backend, *key))
    }

    /// The advisory lock that a party holds and that most sessions wait for.
    pub fn awaited_key(self, party: Party) -> Option<(LockTag, LockMode)> {
        let queues = self.view.graph.queues.iter().filter(|queue| queue.tag.locktype() == LockType::Advisory);
        let held = queues.filter_map(|queue| {
            let holder = queue.holders.iter().find(|holder| holder.party == party)?;
            Some((queue.waiters.len(), queue.tag, holder.modes.iter().last()?))
        });
        let most = held.max_by_key(|(waiters, tag, _)| (*waiters, std::cmp::Reverse(*tag)));
        most.map(|(_, tag, mode)| (tag, mode))
    }
}

/// Knowledge about the writes of a transaction. A transaction ID proves no write: `SELECT … FOR UPDATE` assigns one, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKnowledge {
    No,
    /// It has one, perhaps only for the lock that it waits for: a request for `AccessExclusiveLock` on a relation assigns one
    /// before the lock (`LogAccessExclusiveLockPrepare`, called by `LockAcquireExtended` in
    /// `src/backend/storage/lmgr/lock.c`).
    ForLock,
    /// It has a transaction ID.
    Maybe,
}

pub fn write_knowledge(graph: &WaitGraph, backend: &Backend) -> WriteKnowledge {
    match backend.backend_xid {
        None => WriteKnowledge::No,
        Some(_) if awaits_whole_relation(graph, backend.pid) => WriteKnowledge::ForLock,
        Some(_) => WriteKnowledge::Maybe,
    }
}

pub(in crate::model) fn awaits_whole_relation(graph: &WaitGraph, pid: i32) -> bool {
    let wait = graph.wait_of(Party::Backend(pid));
    wait.is_some_and(|(queue, place)| {
        let mode = queue.waiters.get(place).map(|waiter| waiter.mode);
        queue.tag.locktype() == LockType::Relation && mode == Some(LockMode::AccessExclusive)
    })
}

/// Number of holders, and of waiters, that are tried for the name of a key.
const ASKED: usize = 4;

impl<'a> SnapshotView<'a> {
    /// The session that provides the name of a lock, on every screen: `pid`, which holds it or waits for it. For an advisory
    /// lock, the first of `pid`, its holders and its waiters that gives a certain name.
    pub fn namer(self, names: &LockNames, tag: &LockTag, pid: Option<i32>) -> Option<&'a Backend> {
        let own = pid.and_then(|pid| self.backend(pid));
        if tag.locktype() != LockType::Advisory {
            return own;
        }
        let Some(queue) = self.view.index.queue(&self.view.graph, tag) else { return own };
        let holders = queue.holders.iter().filter_map(|holder| self.backend(holder.party.pid()));
        let waiters = queue.waiters.iter().filter_map(|waiter| self.backend(waiter.pid));
        let mut all = own.into_iter().chain(holders.take(ASKED)).chain(waiters.take(ASKED));
        let hashed = OnceCell::new();
        let hashed = || hashed.get_or_init(|| words::hashed_name(self.snapshot, tag)).clone();
        let is_sure = |backend: &&Backend| {
            let name = words::lock_name_or(self.snapshot, names, (tag, Some(*backend)), hashed);
            name.is_some_and(|name| !name.uncertain)
        };
        all.find(is_sure).or(own)
    }
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
            write_knowledge(&view.graph, &backend)
        };
        assert_eq!(written(LockMode::AccessExclusive, Some(787)), WriteKnowledge::ForLock);
        assert_eq!(written(LockMode::Exclusive, Some(787)), WriteKnowledge::Maybe, "that lock brings none");
        assert_eq!(written(LockMode::AccessExclusive, None), WriteKnowledge::No);
    }
}
