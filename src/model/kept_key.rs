//! A session-level lock that stays while the session runs other statements: behind a pooler in transaction mode, those of
//! other clients.
//!
//! `pg_locks` does not distinguish session-level locks from transaction-level locks. A lock is session-level if its holder
//! is in no transaction, or if another session has waited for it since before the holder's transaction began: a release
//! would have granted it to that session.

use super::backend::{Backend, State};
use super::lock::{LockMode, LockTag, LockType};
use super::view::SnapshotView;
use super::wait_graph::Party;

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
        let is_unrelated = || backend.query.as_ref().is_some_and(|query| !names_keys(query.unredacted()));
        let seen = || self.view.held_since.get(&(backend.pid, tag)).is_some_and(|held| held.seen < began);
        let is_idle = backend.state == Some(State::Idle) && backend.xact_start.is_none();
        waits_longer || is_idle && is_unrelated() && seen()
    }

    /// The session-level lock that a party keeps and that most sessions wait for.
    pub fn kept_key(self, party: Party) -> Option<(LockTag, LockMode)> {
        let backend = self.backend(party.pid()).filter(|_| matches!(party, Party::Backend(_)))?;
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

fn names_keys(query: &str) -> bool {
    query.to_ascii_lowercase().contains("advisory")
}
