//! The work loop of one connection.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::connected::{Connected, RETRY, Stage};
use super::event::{Event, JobEvent};
use super::running::{Done, RunningJobs};
use super::stop::StopReason;
use super::stop::Work;
use super::{Options, Summary};
use crate::work_session::{News, SessionError, Source, WorkSession};
use locktop_base::clock;

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

/// Runs until the connection ends, or nothing is left to do after `quit`.
pub(super) async fn work<W: Work>(
    options: &Options,
    session: WorkSession,
    running_jobs: &mut RunningJobs<W>,
    quit: &mut watch::Receiver<bool>,
    summary: &mut Summary,
) -> End {
    let mut ended = session.ended();
    let mut connected = Connected::new(options, session, running_jobs, summary);
    let outcome = connected.run(&mut ended, quit).await;
    for job in connected.unwritten.jobs() {
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

enum Next {
    Lost(String),
    Quit,
    Heartbeat,
    Done(Box<Done>),
    Retry,
    Stop,
    Observe,
    Purge,
    Glance,
    Look(Source),
    News(News),
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
            let written = self.unwritten.is_empty() || self.is_over();
            if self.stage != Stage::Working && self.running_jobs.running() == 0 && written {
                return Ok(());
            }
            match self.next(ended, quit).await {
                Next::Lost(reason) => return Err(SessionError::Lost(reason)),
                Next::Quit => {
                    self.stage = Stage::Quitting(clock::monotonic() + self.options.grace);
                    self.options.report.tell(&Event::ShuttingDown { running: self.running_jobs.running() });
                }
                Next::Stop => {
                    self.stage = Stage::Stopping(clock::monotonic() + LAST);
                    self.running_jobs.stop_all(&StopReason::ShutDown);
                }
                Next::Heartbeat => self.heartbeat().await?,
                Next::Done(done) => self.done(*done).await?,
                Next::Retry => self.retry().await?,
                Next::Observe => self.observe().await?,
                Next::Purge => self.purge().await?,
                Next::Glance => self.glance().await?,
                Next::Look(source) => self.look(source).await?,
                Next::News(news) => self.hear(news),
            }
        }
    }

    async fn next(
        &mut self,
        ended: &mut watch::Receiver<Option<String>>,
        quit: &mut watch::Receiver<bool>,
    ) -> Next {
        let works = self.stage == Stage::Working;
        let is_idle = !Source::ALL
            .into_iter()
            .any(|source| self.running_jobs.has(source) || self.unwritten.has(source));
        let stop_at = match self.stage {
            Stage::Quitting(at) => Some(at),
            Stage::Working | Stage::Stopping(_) => None,
        };
        let unwritten = !self.unwritten.is_empty();
        let (running, free) = (self.running_jobs.running() > 0, self.running_jobs.free() > 0);
        let (look, takes) = (self.pollers.next(), works && free && !self.running_jobs.is_losing());
        tokio::select! {
            biased;
            reason = lost(ended) => Next::Lost(reason),
            () = quits(quit), if works => Next::Quit,
            () = at(Some(self.heartbeat_at)), if running || unwritten => Next::Heartbeat,
            done = self.running_jobs.next() => Next::Done(Box::new(done)),
            () = at(Some(self.unwritten.at)), if unwritten => Next::Retry,
            () = at(stop_at) => Next::Stop,
            () = at(self.observe_at), if works => Next::Observe,
            () = at(Some(self.glance_at)), if takes => Next::Glance,
            // Before notifications: an endless stream of them must not prevent polls.
            source = turn(look), if takes => Next::Look(source),
            // After the polls: due work comes first. Heartbeats of running jobs are not delayed by it.
            () = at(self.purges.at), if works && is_idle => Next::Purge,
            news = self.session.news() => Next::News(news),
        }
    }

    async fn heartbeat(&mut self) -> Result<(), SessionError> {
        let (now, asked) = (clock::monotonic(), clock::since_boot());
        self.heartbeat_at = now + self.options.heartbeat;
        for source in Source::ALL {
            if !self.running_jobs.has(source) && !self.unwritten.has(source) {
                continue;
            }
            match self.session.heartbeat(source).await {
                Ok(ours) => self.running_jobs.keep(source, &ours),
                Err(error) => {
                    self.heartbeat_at = clock::monotonic() + RETRY.min(self.options.heartbeat);
                    return self.refused("a heartbeat", error);
                }
            }
        }
        // After that: a lost job must not be confirmed.
        self.hold.confirm(asked);
        self.accepted("a heartbeat");
        self.tidy().await
    }

    async fn observe(&mut self) -> Result<(), SessionError> {
        const WHAT: &str = "observing lock waits";
        let began = clock::monotonic();
        self.observe_at = self.options.observe_locks.map(|pause| began + pause);
        match self.session.observe_lock_waits().await {
            Ok(_) => self.accepted(WHAT),
            Err(error) => self.refused(WHAT, error)?,
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
async fn turn(look: Option<(Source, Instant)>) -> Source {
    at(look.map(|(_, time)| time)).await;
    match look {
        Some((source, _)) => source,
        None => std::future::pending().await,
    }
}
