//! Ends of work that are not written down yet.

use std::time::{Duration, Instant};

use crate::work_session::{Finish, Job, Source};

/// An end that is to be written down.
#[derive(Debug)]
pub(super) enum Settle {
    /// How the work ended, and how long it had taken.
    Finish(Finish, Duration),
    GiveBack,
}

/// Ends that the server refused to write down, for another attempt.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) ends: Vec<(Job, Settle)>,
    /// When they are tried again.
    pub(super) at: Instant,
}

impl Unwritten {
    pub(super) fn new(now: Instant) -> Self {
        Self { ends: Vec::new(), at: now }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// It is tried again at that time.
    pub(super) fn retry_at(&mut self, at: Instant) {
        self.at = at;
    }

    pub(super) fn has(&self, source: Source) -> bool {
        self.jobs().any(|job| job.source == source)
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.ends.iter().map(|(job, _)| job)
    }
}
