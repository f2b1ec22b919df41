//! What is locked, in words.

use crate::model::backend::Backend;
use crate::model::lock::LockTag;
use crate::model::lock_name::{LockName, LockNames};
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::words;

/// A snapshot with the names that its locks may have.
#[derive(Debug)]
pub struct Words<'a> {
    snapshot: &'a Snapshot,
    lock_names: &'a LockNames,
    index: &'a SnapshotIndex,
}

impl<'a> Words<'a> {
    /// For the locks of `snapshot`.
    pub fn of(snapshot: &'a Snapshot, index: &'a SnapshotIndex, lock_names: &'a LockNames) -> Self {
        Self { snapshot, lock_names, index }
    }

    /// The backend with this process id.
    pub fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.index.backend(self.snapshot, pid)
    }

    /// The name of an advisory lock that `pid` holds or awaits.
    pub fn name(&self, tag: &LockTag, pid: Option<i32>) -> Option<LockName> {
        let holder = pid.and_then(|pid| self.backend(pid));
        words::lock_name(self.snapshot, self.lock_names, tag, holder)
    }

    /// What `waiter` waits for: of a transaction the row behind it, where that is known.
    pub fn awaited(&self, tag: &LockTag, waiter: i32) -> String {
        self.target(self.index.awaited(tag, waiter), Some(waiter))
    }

    /// `accounts`, `"Prisma Migrate"`, `advisory 42`: text of the server, not yet fit for a screen.
    pub fn target(&self, tag: &LockTag, pid: Option<i32>) -> String {
        let holder = pid.and_then(|pid| self.backend(pid));
        words::quoted(self.snapshot, self.lock_names, tag, holder)
    }
}
