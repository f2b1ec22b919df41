//! The work on one connection, from its beginning to its end.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::crew::{Crew, Done};
use super::event::{Event, Name};
use super::idle::Idle;
use super::life::quits;
use super::stop::{Hold, StopReason};
use super::work::{Work, WorkError};
use super::{Options, Summary};
use crate::clock;
use crate::locks::scheduled_task::{Execution, Finish, News, SessionError, TaskSession};

/// Between two attempts to write down an end that the server refused.
const RETRY: Duration = Duration::from_secs(1);
/// From when everything was told to stop: the work has half of it, and the rest is for ends that the server refuses to write.
const LAST: Duration = Duration::from_secs(10);
/// How long the server may take to hear our goodbye.
const FAREWELL: Duration = Duration::from_secs(1);

/// How it ended.
#[derive(Debug)]
pub(super) enum End {
    /// Told to quit, and all is settled.
    Quit,
    /// The connection is of no more use, and why.
    Lost(String),
}

/// An end that is to be written down.
#[derive(Debug)]
enum Settle {
    Finish(Finish),
    GiveBack,
}

/// How far it is with ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Working,
    /// No new tasks; what still runs then is stopped.
    Quitting(Instant),
    /// Everything was told to stop; ends that are not written by then stay so.
    Stopping(Instant),
}

struct Shift<'a, W> {
    options: &'a Options,
    session: TaskSession,
    crew: &'a mut Crew<W>,
    summary: &'a mut Summary,
    hold: Hold,
    idle: Idle,
    heartbeat_at: Instant,
    /// Ends that the server refused to write down, for another attempt.
    unwritten: Vec<(Execution, Settle)>,
    retry_at: Instant,
    stage: Stage,
    /// Whether the session may hold keys of tasks that it does not run.
    untidy: bool,
    /// What the server last refused, so that it is said once.
    refused: String,
}

/// Works until the connection ends, or there is nothing left to do after `quit`.
pub(super) async fn work<W: Work>(
    options: &Options,
    session: TaskSession,
    crew: &mut Crew<W>,
    quit: &mut watch::Receiver<bool>,
    summary: &mut Summary,
) -> End {
    let now = clock::monotonic();
    let mut ended = session.ended();
    let mut shift = Shift {
        options,
        session,
        crew,
        summary,
        hold: Hold::new(clock::since_boot(), options.heartbeat * 2),
        idle: Idle::new(now),
        heartbeat_at: now,
        unwritten: Vec::new(),
        retry_at: now,
        stage: Stage::Working,
        untidy: false,
        refused: String::new(),
    };
    let outcome = shift.run(&mut ended, quit).await;
    for (execution, _) in &shift.unwritten {
        shift.summary.not_counted += 1;
        let reason = "the session ended before the server took it".to_owned();
        options.report.tell(&Event::NotWritten { task: Name::from(execution), reason });
    }
    match outcome {
        Ok(()) => {
            shift.session.close(FAREWELL).await;
            End::Quit
        }
        // Dropped, it ends at once: there is no time to lose for telling the work.
        Err(error) => End::Lost(error.to_string()),
    }
}

/// What there is to do next.
enum Next {
    Lost(String),
    Quit,
    Heartbeat,
    Done(Box<Done>),
    Retry,
    Stop,
    Look,
    News(News),
}

impl<W: Work> Shift<'_, W> {
    /// The error is always that the session is lost.
    async fn run(
        &mut self,
        ended: &mut watch::Receiver<Option<String>>,
        quit: &mut watch::Receiver<bool>,
    ) -> Result<(), SessionError> {
        loop {
            let written = self.unwritten.is_empty() || self.is_over();
            if self.stage != Stage::Working && self.crew.running() == 0 && written {
                return Ok(());
            }
            match self.next(ended, quit).await {
                Next::Lost(reason) => return Err(SessionError::Lost(reason)),
                Next::Quit => {
                    self.stage = Stage::Quitting(clock::monotonic() + self.options.grace);
                    self.options.report.tell(&Event::ShuttingDown { running: self.crew.running() });
                }
                Next::Stop => {
                    self.stage = Stage::Stopping(clock::monotonic() + LAST);
                    self.crew.stop_all(&StopReason::ShutDown);
                }
                Next::Heartbeat => self.heartbeat().await?,
                Next::Done(done) => self.done(*done).await?,
                Next::Retry => self.retry().await?,
                Next::Look => self.look().await?,
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
        let stop_at = match self.stage {
            Stage::Quitting(at) => Some(at),
            Stage::Working | Stage::Stopping(_) => None,
        };
        let unwritten = !self.unwritten.is_empty();
        let (running, free) = (self.crew.running() > 0, self.crew.free() > 0);
        tokio::select! {
            biased;
            reason = lost(ended) => Next::Lost(reason),
            () = quits(quit), if works => Next::Quit,
            () = at(Some(self.heartbeat_at)), if running || unwritten => Next::Heartbeat,
            done = self.crew.next() => Next::Done(Box::new(done)),
            () = at(Some(self.retry_at)), if unwritten => Next::Retry,
            () = at(stop_at) => Next::Stop,
            // Before the news: whoever sends them without end does not keep us from looking.
            () = at(Some(self.idle.at())), if works && free && !self.crew.is_losing() => Next::Look,
            news = self.session.news() => Next::News(news),
        }
    }

    async fn heartbeat(&mut self) -> Result<(), SessionError> {
        let (now, asked) = (clock::monotonic(), clock::since_boot());
        self.heartbeat_at = now + self.options.heartbeat;
        match self.session.heartbeat().await {
            Ok(ours) => {
                // In this order: nothing that is lost may be confirmed.
                self.crew.keep(&ours);
                self.hold.confirm(asked);
            }
            Err(error) => {
                self.refused("a heartbeat", error)?;
                self.heartbeat_at = clock::monotonic() + RETRY.min(self.options.heartbeat);
            }
        }
        self.tidy().await
    }

    /// Gives back the keys of tasks that are not run here. Where nothing is, the end of the session does the same.
    async fn tidy(&mut self) -> Result<(), SessionError> {
        if !self.untidy {
            return Ok(());
        }
        let Err(error) = self.session.release_idle_keys(&self.crew.tasks()).await else {
            self.untidy = false;
            return Ok(());
        };
        self.refused("giving back keys", error)?;
        if self.crew.running() > 0 || !self.unwritten.is_empty() {
            return Ok(());
        }
        Err(SessionError::Lost("it may still have keys of tasks that it does not run".to_owned()))
    }

    async fn look(&mut self) -> Result<(), SessionError> {
        for news in self.session.news_so_far() {
            self.hear(news);
        }
        if self.idle.at() <= clock::monotonic()
            && let Err(error) = self.fetch().await
        {
            self.refused("looking for tasks", error)?;
            self.untidy = true;
            self.idle.failed(clock::monotonic());
        }
        self.tidy().await
    }

    async fn fetch(&mut self) -> Result<(), SessionError> {
        let (asked, free) = (clock::since_boot(), self.crew.free());
        let taken = self.session.fetch(free).await?;
        let took = taken.len();
        if took > 0 && self.crew.running() == 0 {
            self.hold.confirm(asked);
            self.heartbeat_at = clock::monotonic() + self.options.heartbeat;
        }
        let working = self.crew.tasks();
        for execution in taken {
            if working.contains(&execution.task_id) {
                // Somebody closed it while the work goes on here, so that we, who have the key, got it anew.
                self.settle(execution, Settle::GiveBack).await?;
                self.heartbeat_at = clock::monotonic();
            } else {
                self.crew.start(execution, &self.hold);
            }
        }
        if !self.hold.is_good() {
            // Suspended just now: the work waits for this.
            self.heartbeat_at = clock::monotonic();
        }
        self.refused.clear();
        let mut heard = self.session.news_so_far();
        let told = heard.iter().any(|news| matches!(news, News::Quiet(_)));
        let tells = self.idle.tells() && !told;
        if took >= free {
            // There may be more, for others; if not they can be told.
            if tells {
                self.session.next_due_telling(None).await?;
            }
            self.idle.took_all(clock::monotonic());
            return self.pass_on(tells).await;
        }
        let due = if tells {
            self.session.next_due_telling(Some(self.idle.pause())).await?
        } else {
            self.session.next_due().await?
        };
        self.idle.looked(clock::monotonic(), took > 0, due);
        heard.extend(self.session.news_so_far());
        let news = heard.contains(&News::Due);
        heard.into_iter().filter(|news| *news == News::Told).for_each(|news| self.hear(news));
        if news {
            self.idle.heard_while_looking(clock::monotonic());
        }
        Ok(())
    }

    /// What was heard while a worker that has no free place told the others that nothing is left: it cannot look for itself, so
    /// they are told that they should.
    async fn pass_on(&mut self, told: bool) -> Result<(), SessionError> {
        let heard = self.session.news_so_far();
        if told && heard.contains(&News::Due) {
            self.session.tell_due().await?;
        }
        heard.into_iter().filter(|news| *news == News::Told).for_each(|news| self.hear(news));
        Ok(())
    }

    fn hear(&mut self, news: News) {
        let now = clock::monotonic();
        match news {
            News::Due => self.idle.heard(now),
            News::Quiet(due) => self.idle.quiet(now, due),
            News::Told => self.idle.told(),
        }
    }

    async fn done(&mut self, done: Done) -> Result<(), SessionError> {
        self.idle.freed(clock::monotonic());
        let settle = match (done.told, done.outcome) {
            (Some(StopReason::NotOurs | StopReason::ConnectionLost(_)), _) => {
                self.summary.stopped += 1;
                self.untidy = true;
                return self.tidy().await;
            }
            (_, Ok(())) => Settle::Finish(Finish::Completed),
            (_, Err(WorkError::Failed(reason))) => Settle::Finish(Finish::Failed(reason)),
            (Some(StopReason::ShutDown), Err(WorkError::Stopped(_))) => Settle::GiveBack,
            (None, Err(WorkError::Stopped(reason))) => Settle::Finish(Finish::Failed(format!(
                "the work stopped without having been told to: {reason}"
            ))),
        };
        self.settle(done.execution, settle).await
    }

    /// Writes an end down, now or as soon as the server takes it.
    async fn settle(&mut self, execution: Execution, settle: Settle) -> Result<(), SessionError> {
        if let Err(error) = self.write(&execution, &settle).await {
            let SessionError::Refused { message: reason, .. } = error else { return Err(error) };
            self.options.report.tell(&Event::NotWritten { task: Name::from(&execution), reason });
            self.retry_at = clock::monotonic() + RETRY;
            self.unwritten.push((execution, settle));
        }
        self.tidy().await
    }

    /// Whether nothing more is tried.
    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Stopping(until) if until <= clock::monotonic())
    }

    /// Tries again to write down what the server refused.
    async fn retry(&mut self) -> Result<(), SessionError> {
        let mut left = std::mem::take(&mut self.unwritten).into_iter();
        while !self.is_over()
            && let Some((execution, settle)) = left.next()
        {
            match self.write(&execution, &settle).await {
                Ok(()) => {}
                Err(SessionError::Refused { .. }) => self.unwritten.push((execution, settle)),
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

    async fn write(&mut self, execution: &Execution, settle: &Settle) -> Result<(), SessionError> {
        let written = match settle {
            Settle::Finish(finish) => self.session.finish(execution, finish.clone()).await,
            Settle::GiveBack => self.session.give_back(execution).await,
        };
        if let Err(SessionError::Lost(reason)) = &written {
            self.summary.not_counted += 1;
            let (task, reason) = (Name::from(execution), reason.clone());
            self.options.report.tell(&Event::NotKnown { task, reason });
        }
        let counted = written?;
        self.untidy |= !counted;
        let count = match settle {
            _ if !counted => &mut self.summary.not_counted,
            Settle::Finish(Finish::Completed) => &mut self.summary.completed,
            Settle::Finish(Finish::Failed(_)) => &mut self.summary.failed,
            Settle::GiveBack => &mut self.summary.given_back,
        };
        *count += 1;
        let task = Name::from(execution);
        match settle {
            _ if !counted => self.options.report.tell(&Event::NotCounted { task }),
            Settle::GiveBack => self.options.report.tell(&Event::GivenBack { task }),
            Settle::Finish(_) => {}
        }
        Ok(())
    }

    /// Says what the server refused, once; a session that is lost is passed on.
    fn refused(&mut self, what: &'static str, error: SessionError) -> Result<(), SessionError> {
        let SessionError::Refused { message, .. } = error else { return Err(error) };
        if message != self.refused {
            self.refused.clone_from(&message);
            self.options.report.tell(&Event::Refused { what, reason: message });
        }
        Ok(())
    }
}

/// Returns when the connection has ended.
async fn lost(ended: &mut watch::Receiver<Option<String>>) -> String {
    let reason = ended.wait_for(Option::is_some).await;
    reason.ok().and_then(|reason| reason.clone()).unwrap_or_else(|| "it was closed".to_owned())
}

/// Returns at that time; never without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
