use std::time::Duration;

use super::connected::{Connected, RETRY, Unwritten};
use super::event::JobEvent;
use super::running::Done;
use super::stop::{StopReason, Work, WorkError};
use crate::work_session::{Finish, Job, SessionError, Source};
use locktop_base::clock;

impl<W: Work> Connected<'_, W> {
    pub(super) async fn done(&mut self, done: Done) -> Result<(), SessionError> {
        self.pollers.freed(clock::monotonic());
        let finish = match (done.stop_reason, done.outcome) {
            (Some(StopReason::NotOurs | StopReason::ConnectionLost(_)), _) => {
                self.summary.stopped += 1;
                self.untidy = true;
                return self.tidy().await;
            }
            (_, Ok(())) => Some(Finish::Completed),
            (_, Err(WorkError::Failed(reason))) => Some(Finish::Failed(reason)),
            (_, Err(WorkError::Refused(reason))) => Some(Finish::Refused(reason)),
            (Some(StopReason::ShutDown), Err(WorkError::Stopped(_))) => None,
            (None, Err(WorkError::Stopped(reason))) => {
                Some(Finish::Failed(format!("the work stopped without a request to stop: {reason}")))
            }
        };
        self.settle(Unwritten { job: done.job, finish, took: done.took }).await
    }

    /// Returns a job that was taken and is not to be run.
    pub(super) async fn give_back(&mut self, job: Job) -> Result<(), SessionError> {
        self.settle(Unwritten { job, finish: None, took: Duration::ZERO }).await
    }

    /// Writes a result, now or as soon as the server accepts it.
    async fn settle(&mut self, end: Unwritten) -> Result<(), SessionError> {
        if let Err(error) = self.write(&end).await {
            let SessionError::Refused { message: reason, .. } = error else { return Err(error) };
            self.options.report.send_of(&end.job, JobEvent::NotWritten(reason));
            self.retry_at = clock::monotonic() + RETRY;
            self.unwritten.push(end);
        }
        self.tidy().await
    }

    /// Retries the writes that the server refused.
    pub(super) async fn retry(&mut self) -> Result<(), SessionError> {
        let mut left = std::mem::take(&mut self.unwritten).into_iter();
        while !self.is_over()
            && let Some(end) = left.next()
        {
            match self.write(&end).await {
                Ok(()) => {}
                Err(SessionError::Refused { .. }) => self.unwritten.push(end),
                Err(error) => {
                    self.unwritten.extend(left);
                    return Err(error);
                }
            }
        }
        self.unwritten.extend(left);
        self.retry_at = clock::monotonic() + RETRY;
        self.tidy().await
    }

    async fn write(&mut self, Unwritten { job, finish, took }: &Unwritten) -> Result<(), SessionError> {
        let written = match finish {
            Some(finish) => self.session.finish(job, finish.clone()).await,
            None => self.session.give_back(job).await,
        };
        if let Err(SessionError::Lost(reason)) = &written {
            self.summary.not_counted += 1;
            self.options.report.send_of(job, JobEvent::NotKnown(reason.clone()));
        }
        let counted = written?;
        self.untidy |= !counted;
        let (count, event) = match finish {
            _ if !counted => (&mut self.summary.not_counted, JobEvent::NotCounted),
            None => (&mut self.summary.given_back, JobEvent::GivenBack),
            Some(Finish::Completed) => (&mut self.summary.completed, JobEvent::Completed(*took)),
            Some(finish @ (Finish::Failed(reason) | Finish::Refused(reason))) => {
                let is_set_aside = job.source == Source::Queue && matches!(finish, Finish::Refused(_));
                let again = !is_set_aside && job.attempt < job.max_attempts;
                (&mut self.summary.failed, JobEvent::Failed { took: *took, again, reason: reason.clone() })
            }
        };
        *count += 1;
        self.options.report.send_of(job, event);
        Ok(())
    }
}
