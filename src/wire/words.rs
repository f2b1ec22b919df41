use crate::model::backend::Backend;
use crate::model::lease::LeaseId;
use crate::model::lock::{LockTag, Prepared};
use crate::model::lock_name::{LockName, LockNames};
use crate::model::rate_limit::{self, LimitId};
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::words;

#[derive(Debug)]
pub struct Words<'a> {
    snapshot: &'a Snapshot,
    lock_names: &'a LockNames,
    index: &'a SnapshotIndex,
}

impl<'a> Words<'a> {
    pub fn of(snapshot: &'a Snapshot, index: &'a SnapshotIndex, lock_names: &'a LockNames) -> Self {
        Self { snapshot, lock_names, index }
    }

    pub fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.index.backend(self.snapshot, pid)
    }

    pub fn name(&self, tag: &LockTag, pid: Option<i32>) -> Option<LockName> {
        let holder = pid.and_then(|pid| self.backend(pid));
        words::lock_name(self.snapshot, self.lock_names, tag, holder)
    }

    /// The object that `waiter` waits for; for a transaction, the row behind it if known.
    pub fn awaited(&self, tag: &LockTag, waiter: i32) -> String {
        self.target(self.index.awaited(tag, waiter), Some(waiter))
    }

    /// `accounts`, `"Prisma Migrate"`, `advisory 42`: text from the server, not yet safe for a screen.
    pub fn target(&self, tag: &LockTag, pid: Option<i32>) -> String {
        let holder = pid.and_then(|pid| self.backend(pid));
        words::quoted(self.snapshot, self.lock_names, tag, holder)
    }
}

#[derive(Debug, Clone)]
pub struct Gids<'a> {
    snapshot: &'a Snapshot,
    index: &'a SnapshotIndex,
}

impl<'a> Gids<'a> {
    pub fn of(snapshot: &'a Snapshot, index: &'a SnapshotIndex) -> Self {
        Self { snapshot, index }
    }

    pub fn prepared(&self, party: Party) -> Option<&'a Prepared> {
        match party {
            Party::Backend(_) => None,
            Party::Prepared(virtualtransaction) => self.index.prepared(self.snapshot, virtualtransaction),
        }
    }

    /// The name given to PREPARE TRANSACTION; `None` for a session, or if its row was not read.
    pub fn gid(&self, party: Party) -> Option<&'a str> {
        self.prepared(party).map(|row| &*row.gid)
    }
}

pub(super) fn lease(view: &View, id: LeaseId) -> Option<(&str, &str)> {
    let row = view.leases.rows.iter().find(|row| row.id == id)?;
    Some((&row.source, &row.key))
}

pub(super) fn limit(snapshot: &Snapshot, id: LimitId) -> Option<(&str, &str)> {
    let row = rate_limit::rows(snapshot).find(|row| row.id == id)?;
    Some((row.source, &row.limit.key))
}
