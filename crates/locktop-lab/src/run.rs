//! The demo: a server, and scenarios that come about, last some seconds and dissolve, again and again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::OpenQuestion;
use super::postgres::{self, EmbeddedError, EmbeddedServer};
use super::scenario::{Scenario, ScenarioError, ScratchSchema, Timing};
use super::tasks::{PreparedContests, RunningContests, TasksError, TasksOptions};
use pg_connect::conninfo::ConnInfo;
use pg_connect::error::ConnInfoError;

/// Between the end of a scenario and its next beginning.
const PAUSE: Duration = Duration::from_secs(2);
/// Longest that dropping a demo may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Until the first scenario is built: what is aside begins after it.
const ASIDE: Duration = Duration::from_secs(6);
const STAGGER: Duration = Duration::from_millis(700);

/// What to show, and where.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// A server of the user's; without it an embedded one.
    pub url: Option<ConnInfo>,
    /// States of contention that come about and dissolve, again and again.
    pub scenarios: Vec<Scenario>,
    /// One after the other, and not all at the same time.
    pub in_turn: bool,
    /// States that come about beside those: they begin a while later, and each has turns of its own.
    pub aside: Vec<Scenario>,
    /// How fast a scenario is built, and how long it lasts.
    pub timing: Timing,
    /// Workers that compete for tasks.
    pub tasks: Option<TasksOptions>,
    /// How long after one scenario the next one begins, at the start.
    pub stagger: Duration,
    /// While it is open nothing dissolves by itself.
    pub question: OpenQuestion,
    /// Which embedded server is started where there is no `url`.
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

/// Why there is no demo.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// No server of our own.
    #[error(transparent)]
    Server(#[from] EmbeddedError),
    /// Its address is not understood.
    #[error(transparent)]
    Address(#[from] ConnInfoError),
    /// A scenario did not come about.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The tasks or another contest did not start.
    #[error(transparent)]
    Tasks(#[from] TasksError),
}

/// A running demo. [`Self::stop`] ends it and leaves nothing behind. Dropping it does the same, without saying what went
/// wrong; on a server of the user's it waits for that.
#[derive(Debug)]
pub struct Demo {
    /// The server it runs on, as whom, and in which database.
    pub info: ConnInfo,
    /// The embedded server; none on a server of the user's.
    pub server: Option<EmbeddedServer>,
    scratch: ScratchSchema,
    quit: watch::Sender<bool>,
    loops: Vec<JoinHandle<()>>,
    /// The tasks and other contests; none where only scenarios are shown.
    pub contests: Option<RunningContests>,
    ended: bool,
}

/// Starts the demo, and returns as soon as there is a server to look at.
pub async fn run(options: DemoOptions) -> Result<Demo, DemoError> {
    let (info, server) = if let Some(info) = options.url {
        (info, None)
    } else {
        // Whoever looks at it, from wherever, counts as its workers do.
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
        tokio::spawn(async move {
            tokio::select! {
                () = repeat(scenario, scratch, options.timing, delay, (&question, &turns)) => {}
                // Also when the demo was dropped.
                _ = told.wait_for(|quit| *quit) => {}
            }
        })
    };
    let stagger = options.stagger;
    let first = options.scenarios.into_iter().zip(0..);
    let first = first.map(|(scenario, turn)| (stagger * turn, Arc::clone(&turns), scenario));
    let aside = options.aside.into_iter().zip(0..);
    let aside = aside.map(|(scenario, turn)| (ASIDE + stagger * turn, Arc::new(Semaphore::new(1)), scenario));
    let loops = first.chain(aside).map(begin).collect();
    Ok(Demo { info, server, scratch, quit, loops, contests, ended: false })
}

/// The schema of the scenarios, and the contests. What others have there is left alone, and when anything fails nothing of ours is left.
async fn prepare(
    info: &ConnInfo,
    embedded: bool,
    tasks: Option<TasksOptions>,
) -> Result<(ScratchSchema, Option<RunningContests>), DemoError> {
    let Some(tasks) = tasks else { return Ok((ScratchSchema::open(info).await?, None)) };
    // First what only one demo can have: where another one runs, the schema is its own.
    let prepared = PreparedContests::create(info, embedded, tasks).await?;
    let scratch = match ScratchSchema::open(info).await {
        Ok(scratch) => scratch,
        Err(error) => {
            // The first error is the one to tell.
            let _ = prepared.remove().await;
            return Err(error.into());
        }
    };
    match prepared.start().await {
        Ok(contests) => Ok((scratch, Some(contests))),
        Err(error) => {
            if !embedded {
                let _ = scratch.remove().await;
            }
            Err(error.into())
        }
    }
}

impl Demo {
    /// Ends all sessions, then the server, or on a server of the user's removes the schema.
    ///
    /// # Errors
    /// When the user's server is gone, or somebody else uses what is in the schema; when the embedded one does not end.
    pub async fn stop(mut self) -> Result<(), DemoError> {
        self.quit.send_replace(true);
        for task in self.loops.drain(..) {
            // A loop that panicked has ended too.
            let _ = task.await;
        }
        let contests = self.contests.take();
        let outcome = if let Some(server) = self.server.take() {
            // The workers go first: they would look for their server.
            drop(contests);
            server.stop().await.map_err(DemoError::from)
        } else {
            let removed = match contests {
                Some(contests) => contests.remove().await.map_err(DemoError::from),
                None => Ok(()),
            };
            removed.and(remove(&self.scratch).await.map_err(DemoError::from))
        };
        self.ended = true;
        outcome
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.loops.iter().for_each(JoinHandle::abort);
        let contests = self.contests.take();
        if self.ended || self.server.is_some() {
            return;
        }
        // The runtime of the caller may be about to end, or be this very thread's.
        let (scratch, contests) = (self.scratch.clone(), contests.map(RunningContests::end));
        let _ = std::thread::spawn(move || remove_in_time(&scratch, contests)).join();
    }
}

/// Removes what was made, on a runtime of its own; there is nobody to tell when it fails.
fn remove_in_time(scratch: &ScratchSchema, contests: Option<impl Future<Output = Result<(), TasksError>>>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let all = async {
        if let Some(contests) = contests {
            let _ = contests.await;
        }
        remove(scratch).await
    };
    let _ = runtime.block_on(async { tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await });
}

/// Removes what was made, over a new connection: the old one may be lost, or another runtime's.
async fn remove(scratch: &ScratchSchema) -> Result<(), ScenarioError> {
    scratch.reopen().await?.remove().await
}

/// Repeats a scenario until it is cancelled. When the server goes away it waits for it to come back.
async fn repeat(
    scenario: Scenario,
    mut scratch: ScratchSchema,
    timing: Timing,
    delay: Duration,
    (question, turns): (&OpenQuestion, &Semaphore),
) {
    tokio::time::sleep(delay).await;
    loop {
        // Whoever has waited for the longest is next.
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

/// It stays until its time is over, or until somebody has resolved it, and a moment longer.
async fn once(
    scenario: Scenario,
    scratch: &ScratchSchema,
    timing: Timing,
    question: &OpenQuestion,
) -> Result<(), ScenarioError> {
    let running = scenario.start(scratch, timing).await?;
    if running.lasts() {
        let _ = tokio::time::timeout(timing.hold, running.resolved()).await;
    }
    question.closed().await;
    running.dissolve().await
}
