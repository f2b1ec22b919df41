//! A session that was selected.

use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockTag};
use crate::model::plan::{LeaseHeld, Stake};

/// A session that was selected, itself or through a row of something else that it has.
#[derive(Debug, Clone)]
pub(super) struct SelectedSession {
    pub(super) pid: i32,
    /// When it began, where the row that was chosen says so.
    pub(super) start: Option<Timestamp>,
    /// The lock for which it was chosen.
    pub(super) holds: Option<(LockTag, LockMode)>,
    /// What it was chosen for, where that is recorded in tables of our own.
    pub(super) work: Option<Stake>,
    /// The parallel worker in whose place it is meant.
    pub(super) via: Option<i32>,
    /// The lease for which it was chosen.
    pub(super) lease: Option<LeaseHeld>,
}

impl SelectedSession {
    pub(super) fn new(pid: i32, start: Option<Timestamp>) -> Self {
        Self { pid, start, holds: None, work: None, via: None, lease: None }
    }
}
