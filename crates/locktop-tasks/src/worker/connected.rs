use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::event::Event;
use super::idle::glance_in;
use super::pollers::{Poller, Pollers};
use super::purges::Purges;
use super::running::RunningJobs;
use super::stop::Hold;
use super::stop::Work;
use super::{Options, Summary};
use crate::work_session::{Finish, Job, News, SessionError, Source, WorkSession};
use locktop_base::clock;

/// Pause before a refused request is retried.
pub(super) const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Working,
    /// Nothing new is taken; what still runs at this time is stopped.
    Quitting(Instant),
    /// All work was told to stop; results that are not written by this time are left unwritten.
    Stopping(Instant),
}

pub(super) struct Connected<'a, W> {
    pub(super) options: &'a Options,
    pub(super) session: WorkSession,
    pub(super) running_jobs: &'a mut RunningJobs<W>,
    pub(super) summary: &'a mut Summary,
    pub(super) hold: Hold,
    pub(super) pollers: Pollers,
    pub(super) heartbeat_at: Instant,
    /// Next check of the due times, regardless of notifications.
    pub(super) glance_at: Instant,
    /// Next record of lock waits, if any.
    pub(super) observe_at: Option<Instant>,
    /// Whether the types that it takes are recorded.
    pub(super) is_announced: bool,
    pub(super) purges: Purges,
    pub(super) unwritten: Unwritten,
    pub(super) stage: Stage,
    /// Whether the session may hold advisory locks of tasks that it does not run.
    pub(super) untidy: bool,
    /// The last refusal of each kind of request, to report it once.
    refused: HashMap<&'static str, String>,
}

impl<'a, W> Connected<'a, W> {
    pub(super) fn new(
        options: &'a Options,
        session: WorkSession,
        running_jobs: &'a mut RunningJobs<W>,
        summary: &'a mut Summary,
    ) -> Self {
        let now = clock::monotonic();
        Self {
            options,
            session,
            running_jobs,
            summary,
            hold: Hold::new(clock::since_boot(), options.heartbeat * 2),
            pollers: Pollers::new(&options.sources, now),
            heartbeat_at: now,
            glance_at: now + glance_in(true),
            observe_at: options.observe_locks.map(|_| now),
            is_announced: false,
            purges: Purges::new(options.purge, now),
            unwritten: Unwritten::new(now),
            stage: Stage::Working,
            untidy: false,
            refused: HashMap::new(),
        }
    }
}

impl<W: Work> Connected<'_, W> {
    /// Releases the advisory locks of tasks that do not run here. If the server refuses and nothing runs, the end of the
    /// session releases them.
    pub(super) async fn tidy(&mut self) -> Result<(), SessionError> {
        if !self.untidy {
            return Ok(());
        }
        let Err(error) = self.session.release_idle_keys(&self.running_jobs.tasks()).await else {
            self.untidy = false;
            return Ok(());
        };
        self.refused("releasing keys", error)?;
        if self.running_jobs.running() > 0 || !self.unwritten.is_empty() {
            return Ok(());
        }
        Err(SessionError::Lost("it may still hold keys of tasks that it does not run".to_owned()))
    }

    /// Whether the time for writing results is over.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Stopping(until) if until <= clock::monotonic())
    }

    pub(super) fn hear(&mut self, news: News) {
        // Notifications about a source that is not polled are ignored.
        if let Some(Poller { idle, .. }) = self.pollers.of(news.source()) {
            let now = clock::monotonic();
            match news {
                News::Due(_) => idle.heard(now),
                News::Quiet(_, due) => idle.quiet(now, due),
                News::Told(_) => idle.told(),
            }
        }
    }

    /// Reports a refusal once; passes on the loss of the session.
    pub(super) fn refused(&mut self, what: &'static str, error: SessionError) -> Result<(), SessionError> {
        let SessionError::Refused { message, .. } = error else { return Err(error) };
        if self.refused.get(what) != Some(&message) {
            self.refused.insert(what, message.clone());
            self.options.report.tell(&Event::Refused { what, reason: message });
        }
        Ok(())
    }

    /// Forgets the last refusal, so that another one is reported again.
    pub(super) fn accepted(&mut self, what: &'static str) {
        self.refused.remove(what);
    }
}

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
