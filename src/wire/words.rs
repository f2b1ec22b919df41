use crate::model::backend::Backend;
use crate::model::lock::LockTag;
use crate::model::lock_name::{LockName, LockNames};
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
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
