use std::time::Duration;

use tokio::sync::watch;

use super::event::Event;
use super::idle::part_of;
use super::running::RunningJobs;
use super::stop::StopReason;
use super::stop::Work;
use super::work_loop::{self, LoopEnd, quits};
use super::{Options, Summary, WorkerError};
use crate::schema::Schema;
use crate::work_session::{OpenError, WorkSession};
use locktop_base::clock;
use pg_connect::Backoff;

/// Pause between attempts while a server has no free connection or is starting up.
const PAUSE: Duration = Duration::from_secs(1);
/// A session that lasted at least this long resets the backoff.
const LASTING: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Supervisor<W> {
    options: Options,
    running_jobs: RunningJobs<W>,
    quit: watch::Receiver<bool>,
    summary: Summary,
    backoff: Backoff,
    /// The last reported state of the connection, to report it once.
    reported: String,
}

impl<W: Work> Supervisor<W> {
    pub(super) fn new(options: Options, work: W, quit: watch::Receiver<bool>) -> Self {
        let running_jobs = RunningJobs::new(work, options.concurrency.max(1), options.report.clone());
        Self {
            options,
            running_jobs,
            quit,
            summary: Summary::default(),
            backoff: Backoff::default(),
            reported: String::new(),
        }
    }

    pub(super) async fn run(mut self) -> Result<Summary, WorkerError> {
        let mut next = self.begin().await?;
        while let Some(session) = next {
            let types = self.options.types.clone();
            self.options.report.send(&Event::Connected { pid: session.pid(), types });
            self.reported.clear();
            let began = clock::monotonic();
            let end = work_loop::work(
                &self.options,
                session,
                &mut self.running_jobs,
                &mut self.quit,
                &mut self.summary,
            )
            .await;
            match end {
                LoopEnd::Quit => break,
                LoopEnd::Lost(reason) => self.stop_all(reason).await,
            }
            if began.elapsed() < LASTING {
                // The cause may end the next session too.
                let delay = self.backoff.failed(false);
                self.pause(delay).await;
            } else {
                self.backoff = Backoff::default();
            }
            next = self.reconnect().await;
        }
        self.options.report.send(&Event::Ended(self.summary));
        Ok(self.summary)
    }

    /// The first session; `None` if the worker was told to quit before.
    async fn begin(&mut self) -> Result<Option<WorkSession>, OpenError> {
        loop {
            match self.open().await {
                None => return Ok(None),
                Some(Ok(session)) => return Ok(Some(session)),
                Some(Err(error)) if error.is_temporary() => self.wait(&error, PAUSE).await,
                Some(Err(error)) => return Err(error),
            }
        }
    }

    /// A later session: every error is retried, because its cause may pass.
    async fn reconnect(&mut self) -> Option<WorkSession> {
        loop {
            match self.open().await? {
                Ok(session) => return Some(session),
                // Random, so that workers that lost one server together do not all reconnect at once.
                Err(error) => {
                    let delay = self.backoff.failed(false);
                    self.wait(&error, delay.saturating_sub(part_of(delay / 4))).await;
                }
            }
        }
    }

    /// `None` if the worker was told to quit.
    async fn open(&mut self) -> Option<Result<WorkSession, OpenError>> {
        let Options { info, schema, trusted_owners, id, sources, types, .. } = &self.options;
        let schema = Schema { name: schema.clone(), trusted_owners: trusted_owners.clone() };
        let open = async {
            let session = WorkSession::open(info, schema, id, sources).await?;
            session.take_name().await?;
            Ok(session.with_types(types.clone()))
        };
        tokio::select! {
            biased;
            () = quits(&mut self.quit) => None,
            opened = open => Some(opened),
        }
    }

    async fn wait(&mut self, error: &OpenError, pause: Duration) {
        let reason = error.to_string();
        if reason != self.reported {
            self.options.report.send(&Event::Waiting(reason.clone()));
            self.reported = reason;
        }
        self.pause(pause).await;
    }

    /// Returns early if the worker is told to quit.
    async fn pause(&mut self, pause: Duration) {
        tokio::select! {
            () = quits(&mut self.quit) => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// The locks are lost: stops all jobs, and waits for their end before anything new begins.
    async fn stop_all(&mut self, reason: String) {
        let running = self.running_jobs.running();
        self.options.report.send(&Event::Lost { reason: reason.clone(), running });
        self.running_jobs.stop_all(&StopReason::ConnectionLost(reason));
        while self.running_jobs.running() > 0 {
            self.running_jobs.next().await;
            self.summary.stopped += 1;
        }
    }
}
