use super::connected::Settle;
use super::connected::{Connected, RETRY};
use super::event::JobEvent;
use super::running::Done;
use super::stop::StopReason;
use super::stop::{Work, WorkError};
use crate::work_session::{Finish, Job, SessionError, Source};
use locktop_base::clock;

impl<W: Work> Connected<'_, W> {
    pub(super) async fn done(&mut self, done: Done) -> Result<(), SessionError> {
        self.pollers.freed(clock::monotonic());
        let took = done.took;
        let finish = |finish| Settle::Finish(finish, took);
        let settle = match (done.told, done.outcome) {
            (Some(StopReason::NotOurs | StopReason::ConnectionLost(_)), _) => {
                self.summary.stopped += 1;
                self.untidy = true;
                return self.tidy().await;
            }
            (_, Ok(())) => finish(Finish::Completed),
            (_, Err(WorkError::Failed(reason))) => finish(Finish::Failed(reason)),
            (_, Err(WorkError::Refused(reason))) => finish(Finish::Refused(reason)),
            (Some(StopReason::ShutDown), Err(WorkError::Stopped(_))) => Settle::GiveBack,
            (None, Err(WorkError::Stopped(reason))) => {
                finish(Finish::Failed(format!("the work stopped without a request to stop: {reason}")))
            }
        };
        self.settle(done.job, settle).await
    }

    /// Returns a job that was taken and is not to be run.
    pub(super) async fn give_back(&mut self, job: Job) -> Result<(), SessionError> {
        self.settle(job, Settle::GiveBack).await
    }

    /// Writes a result, now or as soon as the server accepts it.
    async fn settle(&mut self, job: Job, settle: Settle) -> Result<(), SessionError> {
        if let Err(error) = self.write(&job, &settle).await {
            let SessionError::Refused { message: reason, .. } = error else { return Err(error) };
            self.options.report.tell_of(&job, JobEvent::NotWritten(reason));
            self.unwritten.retry_at(clock::monotonic() + RETRY);
            self.unwritten.ends.push((job, settle));
        }
        self.tidy().await
    }

    /// Retries the writes that the server refused.
    pub(super) async fn retry(&mut self) -> Result<(), SessionError> {
        let mut left = std::mem::take(&mut self.unwritten.ends).into_iter();
        while !self.is_over()
            && let Some((job, settle)) = left.next()
        {
            match self.write(&job, &settle).await {
                Ok(()) => {}
                Err(SessionError::Refused { .. }) => self.unwritten.ends.push((job, settle)),
                Err(error) => {
                    self.unwritten.ends.extend(left);
                    return Err(error);
                }
            }
        }
        self.unwritten.ends.extend(left);
        self.unwritten.retry_at(clock::monotonic() + RETRY);
        self.tidy().await
    }

    async fn write(&mut self, job: &Job, settle: &Settle) -> Result<(), SessionError> {
        let written = match settle {
            Settle::Finish(finish, _) => self.session.finish(job, finish.clone()).await,
            Settle::GiveBack => self.session.give_back(job).await,
        };
        if let Err(SessionError::Lost(reason)) = &written {
            self.summary.not_counted += 1;
            self.options.report.tell_of(job, JobEvent::NotKnown(reason.clone()));
        }
        let counted = written?;
        self.untidy |= !counted;
        let count = match settle {
            _ if !counted => &mut self.summary.not_counted,
            Settle::Finish(Finish::Completed, _) => &mut self.summary.completed,
            Settle::Finish(Finish::Failed(_) | Finish::Refused(_), _) => &mut self.summary.failed,
            Settle::GiveBack => &mut self.summary.given_back,
        };
        *count += 1;
        self.options.report.tell_of(job, written_down(job, settle, counted));
        Ok(())
    }
}

fn written_down(job: &Job, settle: &Settle, counted: bool) -> JobEvent {
    match settle {
        _ if !counted => JobEvent::NotCounted,
        Settle::GiveBack => JobEvent::GivenBack,
        Settle::Finish(Finish::Completed, took) => JobEvent::Completed(*took),
        Settle::Finish(finish @ (Finish::Failed(reason) | Finish::Refused(reason)), took) => {
            let is_set_aside = job.source == Source::Queue && matches!(finish, Finish::Refused(_));
            let again = !is_set_aside && job.attempt < job.max_attempts;
            JobEvent::Failed { took: *took, again, reason: reason.clone() }
        }
    }
}
