//! The demo: a server, and scenarios that come about, last some seconds and dissolve, again and again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::Audience;
use super::postgres::{self, EmbeddedError, EmbeddedServer};
use super::scenario::{Pace, Scenario, ScenarioError, Stage};
use super::tasks::{Claim, Play, TasksError, TasksOptions};
use pg_connect::conninfo::ConnInfo;
use pg_connect::error::ConnInfoError;

/// Between the end of a scenario and its next beginning.
const PAUSE: Duration = Duration::from_secs(2);
/// Longest that dropping a demo may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const STAGGER: Duration = Duration::from_millis(700);

/// What to show, and where.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// A server of the user's; without it an embedded one.
    pub url: Option<ConnInfo>,
    /// What to play.
    pub scenarios: Vec<Scenario>,
    /// One after the other, and not all at the same time.
    pub in_turn: bool,
    /// How fast.
    pub pace: Pace,
    /// Workers that compete for tasks.
    pub tasks: Option<TasksOptions>,
    /// How long after one scenario the next one begins, at the start.
    pub stagger: Duration,
    /// Who looks on.
    pub audience: Audience,
    /// The embedded server.
    pub server: postgres::Options,
}

impl Default for DemoOptions {
    fn default() -> Self {
        let server = postgres::Options::default().with("max_connections", 300);
        Self {
            url: None,
            scenarios: Scenario::DEMO.into(),
            in_turn: false,
            pace: Pace::DEMO,
            tasks: None,
            stagger: STAGGER,
            audience: Audience::default(),
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
    /// A scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The tasks.
    #[error(transparent)]
    Tasks(#[from] TasksError),
}

/// A running demo. [`Self::stop`] ends it and leaves nothing behind. Dropping it does the same, without saying what went
/// wrong; on a server of the user's it waits for that.
#[derive(Debug)]
pub struct Demo {
    info: ConnInfo,
    server: Option<EmbeddedServer>,
    stage: Stage,
    quit: watch::Sender<bool>,
    loops: Vec<JoinHandle<()>>,
    play: Option<Play>,
    ended: bool,
}

/// Starts the demo, and returns as soon as there is a server to look at.
///
/// # Errors
/// When there is no server, or it does not let us make our schema.
pub async fn run(options: DemoOptions) -> Result<Demo, DemoError> {
    let (info, server) = if let Some(info) = options.url {
        (info, None)
    } else {
        let server = EmbeddedServer::start(options.server).await?;
        (ConnInfo::parse(&server.conninfo())?, Some(server))
    };
    let (stage, play) = Box::pin(prepare(&info, server.is_some(), options.tasks)).await?;
    let (quit, told) = watch::channel(false);
    let at_once = if options.in_turn { 1 } else { options.scenarios.len() };
    let turns = Arc::new(Semaphore::new(at_once));
    let begin = |(place, scenario): (u32, Scenario)| {
        let (stage, mut told) = (stage.clone(), told.clone());
        let (audience, turns, delay) =
            (options.audience.clone(), Arc::clone(&turns), options.stagger * place);
        tokio::spawn(async move {
            tokio::select! {
                () = repeat(scenario, stage, options.pace, delay, (&audience, &turns)) => {}
                // Also when the demo was dropped.
                _ = told.wait_for(|quit| *quit) => {}
            }
        })
    };
    let loops = (0..).zip(options.scenarios).map(begin).collect();
    Ok(Demo { info, server, stage, quit, loops, play, ended: false })
}

/// The stage, and the tasks on it. What others have there is left alone, and when anything fails nothing of ours is left.
async fn prepare(
    info: &ConnInfo,
    embedded: bool,
    tasks: Option<TasksOptions>,
) -> Result<(Stage, Option<Play>), DemoError> {
    let Some(tasks) = tasks else { return Ok((Stage::open(info).await?, None)) };
    // First what only one demo can have: where another one plays, the stage is its own.
    let claim = Claim::make(info, embedded, tasks).await?;
    let stage = match Stage::open(info).await {
        Ok(stage) => stage,
        Err(error) => {
            // The first error is the one to tell.
            let _ = claim.give_up().await;
            return Err(error.into());
        }
    };
    match claim.start().await {
        Ok(play) => Ok((stage, Some(play))),
        Err(error) => {
            if !embedded {
                let _ = stage.remove().await;
            }
            Err(error.into())
        }
    }
}

impl Demo {
    /// Where it plays.
    #[must_use]
    pub fn conninfo(&self) -> &ConnInfo {
        &self.info
    }

    /// The embedded server, if it plays on one.
    #[must_use]
    pub fn server(&self) -> Option<&EmbeddedServer> {
        self.server.as_ref()
    }

    /// The same, to kill and restart it.
    #[must_use]
    pub fn server_mut(&mut self) -> Option<&mut EmbeddedServer> {
        self.server.as_mut()
    }

    /// The tasks, if they are played.
    #[must_use]
    pub fn play(&self) -> Option<&Play> {
        self.play.as_ref()
    }

    /// The same, to finish them.
    #[must_use]
    pub fn play_mut(&mut self) -> Option<&mut Play> {
        self.play.as_mut()
    }

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
        let play = self.play.take();
        let outcome = if let Some(server) = self.server.take() {
            // The workers go first: they would look for their server.
            drop(play);
            server.stop().await.map_err(DemoError::from)
        } else {
            let removed = match play {
                Some(play) => play.remove().await.map_err(DemoError::from),
                None => Ok(()),
            };
            removed.and(remove(&self.stage).await.map_err(DemoError::from))
        };
        self.ended = true;
        outcome
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.loops.iter().for_each(JoinHandle::abort);
        let play = self.play.take();
        if self.ended || self.server.is_some() {
            return;
        }
        // The runtime of the caller may be about to end, or be this very thread's.
        let (stage, play) = (self.stage.clone(), play.map(Play::end));
        let _ = std::thread::spawn(move || remove_in_time(&stage, play)).join();
    }
}

/// Removes what was made, on a runtime of its own; there is nobody to tell when it fails.
fn remove_in_time(stage: &Stage, play: Option<impl Future<Output = Result<(), TasksError>>>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let all = async {
        if let Some(play) = play {
            let _ = play.await;
        }
        remove(stage).await
    };
    let _ = runtime.block_on(async { tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await });
}

/// Removes what was made, over a new connection: the old one may be lost, or another runtime's.
async fn remove(stage: &Stage) -> Result<(), ScenarioError> {
    stage.reopen().await?.remove().await
}

/// Plays a scenario until it is cancelled. When the server goes away it waits for it to come back.
async fn repeat(
    scenario: Scenario,
    mut stage: Stage,
    pace: Pace,
    delay: Duration,
    (audience, turns): (&Audience, &Semaphore),
) {
    tokio::time::sleep(delay).await;
    loop {
        // Whoever has waited for the longest is next.
        let turn = turns.acquire().await;
        if once(scenario, &stage, pace, audience).await.is_err()
            && let Ok(again) = stage.reopen().await
        {
            stage = again;
        }
        tokio::time::sleep(PAUSE).await;
        drop(turn);
    }
}

/// It stays until its time is over, or until somebody has put it right, and a moment longer.
async fn once(
    scenario: Scenario,
    stage: &Stage,
    pace: Pace,
    audience: &Audience,
) -> Result<(), ScenarioError> {
    let running = scenario.start(stage, pace).await?;
    if running.lasts() {
        let _ = tokio::time::timeout(pace.hold, running.put_right()).await;
    }
    audience.done().await;
    running.dissolve().await
}
