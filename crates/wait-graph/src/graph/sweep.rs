//! Counts, position by position along a queue, the distinct groups that block a request there.

use rustc_hash::FxHashMap;

use super::per_mode::{PerMode, stopped_by};
use crate::lock::{LockMode, LockModes};

#[derive(Debug, Default)]
pub(super) struct Sweep {
    stopping: PerMode<u32>,
    /// For each group passed, the requests for which it was already counted.
    passed: FxHashMap<usize, LockModes>,
}

impl Sweep {
    /// Counts the holders too: `stopping` is the number of holders that block each mode.
    pub(super) fn with_holders(stopping: PerMode<u32>) -> Self {
        Self { stopping, passed: FxHashMap::default() }
    }

    /// The number of other groups that block this waiter, which then counts for those behind it. `own` is the modes in
    /// which its group holds the lock, empty if holders are not counted.
    pub(super) fn pass(&mut self, group: usize, own: LockModes, mode: LockMode) -> u32 {
        let passed = self.passed.entry(group).or_insert_with(|| stopped_by(own));
        let itself = u32::from(passed.intersects(LockModes::of(mode)));
        let blockers = self.stopping.get(mode).saturating_sub(itself);
        for stopped in mode.conflicts().iter() {
            if !passed.intersects(LockModes::of(stopped)) {
                *self.stopping.slot(stopped) += 1;
            }
        }
        *passed = passed.union(mode.conflicts());
        blockers
    }
}
