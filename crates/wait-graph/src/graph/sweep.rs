//! Counts, place by place along a queue, the distinct groups that keep a request there waiting.

use rustc_hash::FxHashMap;

use super::per_mode::{PerMode, stopped_by};
use crate::lock::{LockMode, LockModes};

/// Walks a queue from the front.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    stopping: PerMode<u32>,
    /// For each group passed, the requests it was already counted for.
    passed: FxHashMap<usize, LockModes>,
}

impl Sweep {
    /// Counts the holders too: `stopping` is how many of them stop each mode.
    pub(super) fn with_holders(stopping: PerMode<u32>) -> Self {
        Self { stopping, passed: FxHashMap::default() }
    }

    /// How many other groups keep this waiter waiting, after which it counts for those behind it.
    /// `own` is what its group holds of the lock, empty when holders are not counted.
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
