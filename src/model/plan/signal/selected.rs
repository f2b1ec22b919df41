use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockTag};
use crate::model::plan::{LeaseHeld, Stake};

#[derive(Debug, Clone)]
pub(super) struct SelectedSession {
    pub(super) pid: i32,
    pub(super) start: Option<Timestamp>,
    pub(super) holds: Option<(LockTag, LockMode)>,
    pub(super) work: Option<Stake>,
    /// The parallel worker that this session replaces as its leader.
    pub(super) via: Option<i32>,
    pub(super) lease: Option<LeaseHeld>,
}

impl SelectedSession {
    pub(super) fn new(pid: i32, start: Option<Timestamp>) -> Self {
        Self { pid, start, holds: None, work: None, via: None, lease: None }
    }
}
