//! A value for each lock mode, and what is counted with it.

use rustc_hash::FxHashMap;

use crate::lock::{LockMode, LockModes};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PerMode<T>([T; 9]);

impl<T: Copy + Default> PerMode<T> {
    pub(super) fn get(&self, mode: LockMode) -> T {
        // The modes count from 1.
        self.0.get(mode as usize - 1).copied().unwrap_or_default()
    }

    pub(super) fn slot(&mut self, mode: LockMode) -> &mut T {
        let [one, two, three, four, five, six, seven, eight, nine] = &mut self.0;
        match mode {
            LockMode::AccessShare => one,
            LockMode::RowShare => two,
            LockMode::RowExclusive => three,
            LockMode::ShareUpdateExclusive => four,
            LockMode::Share => five,
            LockMode::ShareRowExclusive => six,
            LockMode::Exclusive => seven,
            LockMode::AccessExclusive => eight,
            LockMode::SIRead => nine,
        }
    }
}

/// The requests that must wait while another group holds all of `held`: conflicts are symmetric.
pub(super) fn stopped_by(held: LockModes) -> LockModes {
    held.iter().fold(LockModes::default(), |all, mode| all.union(mode.conflicts()))
}

/// Counts, position by position along a queue, the distinct groups that block a request there.
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
