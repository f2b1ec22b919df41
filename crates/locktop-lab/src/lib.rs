//! A laboratory for locks: private servers, [`postgres`] and, with the feature of that name, `redis`; states of
//! contention in them ([`scenario`]); workers that compete for tasks ([`tasks`]) and for the other lock systems
//! ([`contest`]); faults injected into them; and witnesses of what really ran when. For the demo, for tests and for
//! benches.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "a part of the program and its tests; the types of errors say what can go wrong"
)]

pub mod contest;
pub mod postgres;
mod process;
#[cfg(feature = "redis")]
pub mod redis;
pub mod scenario;
pub mod tasks;
mod workers;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use contest::Environment;
use locktop_tasks::schema::{SchemaError, SchemaName};
use pg_connect::conninfo::ConnInfo;
use pg_connect::error::ConnInfoError;
use postgres::EmbeddedServer;
use scenario::{Scenario, ScratchSchema, Timing};
use tasks::{RunningContests, TASKS_SCHEMA, TasksOptions};
pub use workers::{Language, OpenQuestion};

const PAUSE: Duration = Duration::from_secs(2);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the first scenario to be built: the scenarios of `aside` begin after it.
const ASIDE: Duration = Duration::from_secs(6);
const STAGGER: Duration = Duration::from_millis(700);

#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// The user's server; `None` for an embedded one.
    pub url: Option<ConnInfo>,
    pub scenarios: Vec<Scenario>,
    pub in_turn: bool,
    /// Scenarios in addition to those: they begin later, and each repeats on its own.
    pub aside: Vec<Scenario>,
    pub timing: Timing,
    pub tasks: Option<TasksOptions>,
    /// Delay between the first starts of two scenarios.
    pub stagger: Duration,
    /// While a question is open, nothing dissolves automatically.
    pub question: OpenQuestion,
    pub server: postgres::Options,
}

impl Default for DemoOptions {
    fn default() -> Self {
        let server = postgres::Options::default().with("max_connections", 300);
        Self {
            url: None,
            scenarios: Scenario::DEMO.into(),
            in_turn: false,
            aside: Vec::new(),
            timing: Timing::DEMO,
            tasks: None,
            stagger: STAGGER,
            question: OpenQuestion::default(),
            server,
        }
    }
}

/// Why there is no demo, or no server of one's own.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error(transparent)]
    Address(#[from] ConnInfoError),
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// In one line.
    #[error("{0}")]
    Other(String),
}

impl DemoError {
    /// For `map_err`: names what was tried.
    pub(crate) fn cannot<E: Display>(what: impl Display) -> impl FnOnce(E) -> Self {
        move |error| Self::Other(format!("cannot {what}: {error}"))
    }

    /// For `map_err`: names what the statement was for.
    pub(crate) fn server(what: &'static str) -> impl FnOnce(tokio_postgres::Error) -> Self {
        move |error| {
            let message = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
            Self::Other(format!("the server refuses a request of the demo ({what}): {message}"))
        }
    }
}

/// A running demo. [`Self::stop`] ends it and leaves nothing behind. Dropping it does the same without reporting errors;
/// on the user's server the drop waits for the cleanup.
#[derive(Debug)]
pub struct Demo {
    pub info: ConnInfo,
    pub server: Option<EmbeddedServer>,
    scratch: ScratchSchema,
    quit: watch::Sender<bool>,
    loops: JoinSet<()>,
    /// `None` if only scenarios are shown.
    pub contests: Option<RunningContests>,
    ended: bool,
}

/// Starts the demo, and returns as soon as there is a server to monitor.
pub async fn run(options: DemoOptions) -> Result<Demo, DemoError> {
    let (info, server) = if let Some(info) = options.url {
        (info, None)
    } else {
        // Set in the server, so that every session uses the same grace as the workers.
        let grace = options.tasks.as_ref().map(|tasks| format!("{}s", tasks.orphan_grace()));
        let settings = match grace {
            Some(grace) => options.server.with("locktop.orphan_grace", grace),
            None => options.server,
        };
        let server = EmbeddedServer::start(settings).await?;
        (ConnInfo::parse(&server.conninfo())?, Some(server))
    };
    let (scratch, contests) = Box::pin(prepare(&info, server.is_some(), options.tasks)).await?;
    let (quit, told) = watch::channel(false);
    let at_once = if options.in_turn { 1 } else { options.scenarios.len() };
    let turns = Arc::new(Semaphore::new(at_once));
    let begin = |(delay, turns, scenario): (Duration, Arc<Semaphore>, Scenario)| {
        let (scratch, mut told) = (scratch.clone(), told.clone());
        let question = options.question.clone();
        async move {
            tokio::select! {
                () = repeat(scenario, scratch, options.timing, delay, (&question, &turns)) => {}
                // Also if the demo was dropped.
                _ = told.wait_for(|quit| *quit) => {}
            }
        }
    };
    let stagger = options.stagger;
    let first = options.scenarios.into_iter().zip(0..);
    let first = first.map(|(scenario, turn)| (stagger * turn, Arc::clone(&turns), scenario));
    let aside = options.aside.into_iter().zip(0..);
    let aside = aside.map(|(scenario, turn)| (ASIDE + stagger * turn, Arc::new(Semaphore::new(1)), scenario));
    let loops = first.chain(aside).map(begin).collect();
    Ok(Demo { info, server, scratch, quit, loops, contests, ended: false })
}

/// Creates the schema of the scenarios, and the contests. Objects of others are left alone, and after any failure nothing
/// of locktop's own remains.
async fn prepare(
    info: &ConnInfo,
    embedded: bool,
    tasks: Option<TasksOptions>,
) -> Result<(ScratchSchema, Option<RunningContests>), DemoError> {
    let Some(tasks) = tasks else { return Ok((ScratchSchema::open(info).await?, None)) };
    let schema = if embedded { None } else { SchemaName::new(TASKS_SCHEMA).ok() };
    let environment = Environment::new(info, schema.unwrap_or_default(), tasks);
    // First the schema of the contests, which only one demo can have: if another demo is running, the scratch schema belongs
    // to that.
    let client = RunningContests::create(&environment).await?;
    let scratch = match ScratchSchema::open(info).await {
        Ok(scratch) => scratch,
        Err(error) => {
            // The first error is the one to report.
            let _ = tasks::remove(&environment).await;
            return Err(error);
        }
    };
    match RunningContests::start(environment, &client).await {
        Ok(contests) => Ok((scratch, Some(contests))),
        Err(error) => {
            if !embedded {
                let _ = scratch.remove().await;
            }
            Err(error)
        }
    }
}

impl Demo {
    /// Terminates all sessions, then stops the server, or on the user's server removes the schema.
    ///
    /// # Errors
    /// If the user's server is unavailable, or another session uses something in the schema; if the embedded server does not
    /// end.
    pub async fn stop(mut self) -> Result<(), DemoError> {
        self.quit.send_replace(true);
        // A loop that panicked has ended too.
        while self.loops.join_next().await.is_some() {}
        let contests = self.contests.take();
        let outcome = if let Some(server) = self.server.take() {
            // The workers end first: otherwise they would try to reconnect to their server.
            drop(contests);
            server.stop().await
        } else {
            let removed = match contests {
                Some(contests) => contests.remove().await,
                None => Ok(()),
            };
            removed.and(remove(&self.scratch).await)
        };
        self.ended = true;
        outcome
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.loops.abort_all();
        let contests = self.contests.take();
        if self.ended || self.server.is_some() {
            return;
        }
        // The caller's runtime may be about to end, or run on this very thread.
        let (scratch, contests) = (self.scratch.clone(), contests.map(RunningContests::end));
        let _ = std::thread::spawn(move || remove_in_time(&scratch, contests)).join();
    }
}

/// Removes what was created, on a runtime of its own; there is no caller to report a failure to.
fn remove_in_time(scratch: &ScratchSchema, contests: Option<impl Future<Output = Result<(), DemoError>>>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let all = async {
        if let Some(contests) = contests {
            let _ = contests.await;
        }
        remove(scratch).await
    };
    let _ = runtime.block_on(async { tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await });
}

/// Removes what was created, over a new connection: the old one may be lost, or belong to another runtime.
async fn remove(scratch: &ScratchSchema) -> Result<(), DemoError> {
    scratch.reopen().await?.remove().await
}

/// Repeats a scenario until it is cancelled. If the server is lost, it waits for the server to come back.
async fn repeat(
    scenario: Scenario,
    mut scratch: ScratchSchema,
    timing: Timing,
    delay: Duration,
    (question, turns): (&OpenQuestion, &Semaphore),
) {
    tokio::time::sleep(delay).await;
    loop {
        // The scenario that has waited the longest is next.
        let turn = turns.acquire().await;
        if once(scenario, &scratch, timing, question).await.is_err()
            && let Ok(again) = scratch.reopen().await
        {
            scratch = again;
        }
        tokio::time::sleep(PAUSE).await;
        drop(turn);
    }
}

/// It remains until its time is over, or until it was resolved from outside, and a moment longer.
async fn once(
    scenario: Scenario,
    scratch: &ScratchSchema,
    timing: Timing,
    question: &OpenQuestion,
) -> Result<(), DemoError> {
    let running = scenario.start(scratch, timing).await?;
    if running.lasts() {
        let _ = tokio::time::timeout(timing.hold, running.resolved()).await;
    }
    question.closed().await;
    running.dissolve().await
}
