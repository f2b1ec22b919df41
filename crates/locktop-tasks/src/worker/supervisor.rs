//! From the first connection to the last.

use std::time::Duration;

use tokio::sync::watch;

use super::event::Event;
use super::idle::part_of;
use super::running::RunningJobs;
use super::stop::StopReason;
use super::work::Work;
use super::work_loop::{self, End, quits};
use super::{Options, Summary, WorkerError};
use crate::schema::Schema;
use crate::work_session::{OpenError, WorkSession};
use locktop_base::clock;
use pg_connect::Backoff;

/// Between two attempts while a server has no free connection or is starting up.
const PAUSE: Duration = Duration::from_secs(1);
/// A session that lasted for so long was a good one.
const LASTING: Duration = Duration::from_secs(10);

/// A worker while it works.
#[derive(Debug)]
pub(super) struct Supervisor<W> {
    options: Options,
    running_jobs: RunningJobs<W>,
    quit: watch::Receiver<bool>,
    summary: Summary,
    backoff: Backoff,
    /// The last that was said of the connection, so that it is said once.
    said: String,
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
            said: String::new(),
        }
    }

    pub(super) async fn run(mut self) -> Result<Summary, WorkerError> {
        let mut next = self.begin().await?;
        while let Some(session) = next {
            let types = self.options.types.clone();
            self.options.report.tell(&Event::Connected { pid: session.pid(), types });
            self.said.clear();
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
                End::Quit => break,
                End::Lost(reason) => self.stop_all(reason).await,
            }
            if began.elapsed() < LASTING {
                // Whatever ended it at once may do so again.
                let delay = self.backoff.failed(false);
                self.pause(delay).await;
            } else {
                self.backoff = Backoff::default();
            }
            next = self.reconnect().await;
        }
        self.options.report.tell(&Event::Ended(self.summary));
        Ok(self.summary)
    }

    /// The first session; none when it was told to quit before there was one.
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

    /// The same later: whatever stands in the way may pass.
    async fn reconnect(&mut self) -> Option<WorkSession> {
        loop {
            match self.open().await? {
                Ok(session) => return Some(session),
                // Workers that lost one server together do not come back all at once.
                Err(error) => {
                    let delay = self.backoff.failed(false);
                    self.wait(&error, delay.saturating_sub(part_of(delay / 4))).await;
                }
            }
        }
    }

    /// None when it was told to quit.
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
        if reason != self.said {
            self.options.report.tell(&Event::Waiting(reason.clone()));
            self.said = reason;
        }
        self.pause(pause).await;
    }

    /// Waits; not once it is told to quit.
    async fn pause(&mut self, pause: Duration) {
        tokio::select! {
            () = quits(&mut self.quit) => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// The locks are gone: everything stops, and nothing new begins before it has.
    async fn stop_all(&mut self, reason: String) {
        let running = self.running_jobs.running();
        self.options.report.tell(&Event::Lost { reason: reason.clone(), running });
        self.running_jobs.stop_all(&StopReason::ConnectionLost(reason));
        while self.running_jobs.running() > 0 {
            self.running_jobs.next().await;
            self.summary.stopped += 1;
        }
    }
}
