//! A value for each lock mode, and the requests that a set of held modes blocks.

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
