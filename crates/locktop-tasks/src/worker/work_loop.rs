//! The work loop of one connection. Next to its jobs a worker records which types it takes, and removes rows past their
//! retention ([`super::purges`]).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::connected::{Connected, RETRY, Stage, Unwritten};
use super::event::{Event, JobEvent};
use super::idle::{Pollers, glance_in};
use super::purges::Purges;
use super::running::RunningJobs;
use super::stop::{LockConfirmation, StopReason, Work};
use super::{Options, Summary};
use crate::work_session::{SessionError, Source, WorkSession};
use locktop_base::clock;

/// Counted from the request to stop: the work has half of it, and the rest is for results that the server refuses to
/// write.
const LAST: Duration = Duration::from_secs(10);
/// How long the server may take to receive the end of the session.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum LoopEnd {
    /// The worker was told to quit, and everything is settled.
    Quit,
    /// The connection is unusable, for this reason.
    Lost(String),
}

/// Runs until the connection ends, or nothing is left to do after `quit`.
pub(super) async fn work<W: Work>(
    options: &Options,
    session: WorkSession,
    running_jobs: &mut RunningJobs<W>,
    quit: &mut watch::Receiver<bool>,
    summary: &mut Summary,
) -> LoopEnd {
    let (now, mut ended) = (clock::monotonic(), session.ended());
    let mut connected = Connected {
        options,
        session,
        running_jobs,
        summary,
        hold: LockConfirmation::new(clock::since_boot(), options.heartbeat * 2),
        pollers: Pollers::new(&options.sources, now),
        heartbeat_at: now,
        glance_at: now + glance_in(true),
        observe_at: options.observe_locks.map(|_| now),
        is_announced: false,
        purges: Purges::new(options.purge, now),
        unwritten: Vec::new(),
        retry_at: now,
        stage: Stage::Working,
        untidy: false,
        refused: HashMap::new(),
    };
    let outcome = connected.run(&mut ended, quit).await;
    for Unwritten { job, .. } in &connected.unwritten {
        connected.summary.not_counted += 1;
        let reason = "the session ended before the server took it".to_owned();
        options.report.send_of(job, JobEvent::NotWritten(reason));
    }
    match outcome {
        Ok(()) => {
            connected.session.close(SHUTDOWN_TIMEOUT).await;
            LoopEnd::Quit
        }
        // Dropping the session ends it at once: the work must be told to stop without delay.
        Err(error) => LoopEnd::Lost(error.to_string()),
    }
}

impl<W: Work> Connected<'_, W> {
    /// The error always means that the session is lost.
    async fn run(
        &mut self,
        ended: &mut watch::Receiver<Option<String>>,
        quit: &mut watch::Receiver<bool>,
    ) -> Result<(), SessionError> {
        self.announce().await?;
        loop {
            let (running, unwritten) = (self.running_jobs.running(), !self.unwritten.is_empty());
            let (works, runs) = (self.stage == Stage::Working, running > 0);
            if !works && !runs && (!unwritten || self.is_over()) {
                return Ok(());
            }
            let stop_at = match self.stage {
                Stage::Quitting(at) => Some(at),
                Stage::Working | Stage::Stopping(_) => None,
            };
            let takes = works && self.running_jobs.free() > 0 && !self.running_jobs.is_losing();
            tokio::select! {
                biased;
                reason = lost(ended) => return Err(SessionError::Lost(reason)),
                () = quits(quit), if works => {
                    self.stage = Stage::Quitting(clock::monotonic() + self.options.grace);
                    self.options.report.send(&Event::ShuttingDown { running });
                }
                () = at(Some(self.heartbeat_at)), if runs || unwritten => self.heartbeat().await?,
                done = self.running_jobs.next() => self.done(done).await?,
                () = at(Some(self.retry_at)), if unwritten => self.retry().await?,
                () = at(stop_at) => {
                    self.stage = Stage::Stopping(clock::monotonic() + LAST);
                    self.running_jobs.stop_all(&StopReason::ShutDown);
                }
                () = at(self.observe_at), if works => self.observe().await?,
                () = at(Some(self.glance_at)), if takes => self.glance().await?,
                // Before notifications: an endless stream of them must not prevent polls.
                source = next_timer(self.pollers.next()), if takes => self.poll(source).await?,
                // After the polls: due work comes first. Heartbeats of running jobs are not delayed by it.
                () = at(self.purges.at), if works && !runs && !unwritten => self.purge().await?,
                news = self.session.news() => self.handle(news),
            }
        }
    }

    async fn heartbeat(&mut self) -> Result<(), SessionError> {
        let asked = clock::since_boot();
        self.heartbeat_at = clock::monotonic() + self.options.heartbeat;
        let answer = self.beat().await;
        if self.answered("a heartbeat", answer)?.is_none() {
            self.heartbeat_at = clock::monotonic() + RETRY.min(self.options.heartbeat);
            return Ok(());
        }
        // After that: a lost job must not be confirmed.
        self.hold.confirm(asked);
        self.tidy().await
    }

    async fn beat(&self) -> Result<(), SessionError> {
        for source in Source::ALL {
            if self.running_jobs.has(source) || self.unwritten.iter().any(|end| end.job.source == source) {
                self.running_jobs.keep(source, &self.session.heartbeat(source).await?);
            }
        }
        Ok(())
    }

    async fn observe(&mut self) -> Result<(), SessionError> {
        let began = clock::monotonic();
        self.observe_at = self.options.observe_locks.map(|pause| began + pause);
        let answer = self.session.observe_lock_waits().await;
        self.answered("observing lock waits", answer).map(drop)
    }

    async fn announce(&mut self) -> Result<(), SessionError> {
        let answer = self.session.announce(&self.options.sources).await;
        self.is_announced = self.answered("recording which types it takes", answer)?.is_some();
        Ok(())
    }

    /// Removes one batch of rows past their retention, and schedules the next.
    async fn purge(&mut self) -> Result<(), SessionError> {
        if !self.is_announced {
            self.announce().await?;
        }
        let answer = self.session.purge_step().await;
        let logs = self.answered("removing rows past their retention", answer)?;
        let has_more = logs.is_some_and(|logs| self.purges.report(&logs, self.options));
        self.purges.done(clock::monotonic(), has_more);
        Ok(())
    }
}

pub(super) async fn quits(quit: &mut watch::Receiver<bool>) {
    // The sender no longer exists, which also means quit.
    let _ = quit.wait_for(|quit| *quit).await;
}

async fn lost(ended: &mut watch::Receiver<Option<String>>) -> String {
    let reason = ended.wait_for(Option::is_some).await;
    reason.ok().and_then(|reason| reason.clone()).unwrap_or_else(|| "it was closed".to_owned())
}

/// Never returns without a time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// Never returns if there is no source.
async fn next_timer(next: Option<(Source, Instant)>) -> Source {
    let Some((source, time)) = next else { return std::future::pending().await };
    at(Some(time)).await;
    source
}
