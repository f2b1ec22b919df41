//! The work loop of one connection. Next to its jobs a worker records which types it takes, and removes rows past their
//! retention ([`super::purges`]).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::event::{Event, JobEvent};
use super::idle::glance_in;
use super::polls::Pollers;
use super::purges::Purges;
use super::running::RunningJobs;
use super::settle::Unwritten;
use super::stop::{Hold, StopReason, Work};
use super::{Options, Summary};
use crate::work_session::{SessionError, Source, WorkSession};
use locktop_base::clock;

/// Pause before a refused request is retried.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// Counted from the request to stop: the work has half of it, and the rest is for results that the server refuses to
/// write.
const LAST: Duration = Duration::from_secs(10);
/// How long the server may take to receive the end of the session.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum End {
    /// The worker was told to quit, and everything is settled.
    Quit,
    /// The connection is unusable, for this reason.
    Lost(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
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
    observe_at: Option<Instant>,
    /// Whether the types that it takes are recorded.
    is_announced: bool,
    purges: Purges,
    /// Results that the server refused to record, to be retried at `retry_at`.
    pub(super) unwritten: Vec<Unwritten>,
    pub(super) retry_at: Instant,
    stage: Stage,
    /// Whether the session may hold advisory locks of tasks that it does not run.
    pub(super) untidy: bool,
    /// The last refusal of each kind of request, to report it once.
    refused: HashMap<&'static str, String>,
}

/// Runs until the connection ends, or nothing is left to do after `quit`.
pub(super) async fn work<W: Work>(
    options: &Options,
    session: WorkSession,
    running_jobs: &mut RunningJobs<W>,
    quit: &mut watch::Receiver<bool>,
    summary: &mut Summary,
) -> End {
    let (now, mut ended) = (clock::monotonic(), session.ended());
    let mut connected = Connected {
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
        options.report.tell_of(job, JobEvent::NotWritten(reason));
    }
    match outcome {
        Ok(()) => {
            connected.session.close(SHUTDOWN_TIMEOUT).await;
            End::Quit
        }
        // Dropping the session ends it at once: the work must be told to stop without delay.
        Err(error) => End::Lost(error.to_string()),
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
                    self.options.report.tell(&Event::ShuttingDown { running });
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
                source = turn(self.pollers.next()), if takes => self.poll(source).await?,
                // After the polls: due work comes first. Heartbeats of running jobs are not delayed by it.
                () = at(self.purges.at), if works && !runs && !unwritten => self.purge().await?,
                news = self.session.news() => self.hear(news),
            }
        }
    }

    /// Whether the time for writing results is over.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Stopping(until) if until <= clock::monotonic())
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
        let has_more = logs.is_some_and(|logs| self.purges.tell(&logs, self.options));
        self.purges.done(clock::monotonic(), has_more);
        Ok(())
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
            self.options.report.tell(&Event::Refused { what, reason: message });
        }
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
async fn turn(next: Option<(Source, Instant)>) -> Source {
    let Some((source, time)) = next else { return std::future::pending().await };
    at(Some(time)).await;
    source
}
