use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::event::Event;
use super::idle::Pollers;
use super::purges::Purges;
use super::running::RunningJobs;
use super::stop::{LockConfirmation, Work};
use super::{Options, Summary};
use crate::work_session::{Finish, Job, SessionError, WorkSession};
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
    pub(super) hold: LockConfirmation,
    pub(super) pollers: Pollers,
    pub(super) heartbeat_at: Instant,
    /// Next check of the due times, regardless of notifications.
    pub(super) glance_at: Instant,
    /// Next record of lock waits, if any.
    pub(super) observe_at: Option<Instant>,
    /// Whether the types that it takes are recorded.
    pub(super) is_announced: bool,
    pub(super) purges: Purges,
    /// Results that the server refused to record, to be retried at `retry_at`.
    pub(super) unwritten: Vec<Unwritten>,
    pub(super) retry_at: Instant,
    pub(super) stage: Stage,
    /// Whether the session may hold advisory locks of tasks that it does not run.
    pub(super) untidy: bool,
    /// The last refusal of each kind of request, to report it once.
    pub(super) refused: HashMap<&'static str, String>,
}

/// The end of a job, which is not recorded yet.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) job: Job,
    /// `None` if the job is returned.
    pub(super) finish: Option<Finish>,
    /// How long the work took.
    pub(super) took: Duration,
}

impl<W: Work> Connected<'_, W> {
    /// Whether the time for writing results is over.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Stopping(until) if until <= clock::monotonic())
    }

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

    /// The answer to a request; `None` if the server refused it.
    pub(super) fn answered<T>(
        &mut self,
        what: &'static str,
        answer: Result<T, SessionError>,
    ) -> Result<Option<T>, SessionError> {
        match answer {
            Ok(answer) => {
                // Another refusal is reported again.
                self.refused.remove(what);
                Ok(Some(answer))
            }
            Err(error) => self.refused(what, error).map(|()| None),
        }
    }

    /// Reports a refusal once; passes on the loss of the session.
    fn refused(&mut self, what: &'static str, error: SessionError) -> Result<(), SessionError> {
        let SessionError::Refused { message, .. } = error else { return Err(error) };
        if self.refused.get(what) != Some(&message) {
            self.refused.insert(what, message.clone());
            self.options.report.send(&Event::Refused { what, reason: message });
        }
        Ok(())
    }
}
