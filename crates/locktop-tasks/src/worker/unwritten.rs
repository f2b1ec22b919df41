use std::time::{Duration, Instant};

use crate::work_session::{Finish, Job, Source};

#[derive(Debug)]
pub(super) enum Settle {
    /// The result, and how long the work took.
    Finish(Finish, Duration),
    GiveBack,
}

/// Results that the server refused to record, to be retried.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) ends: Vec<(Job, Settle)>,
    pub(super) at: Instant,
}

impl Unwritten {
    pub(super) fn new(now: Instant) -> Self {
        Self { ends: Vec::new(), at: now }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

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
