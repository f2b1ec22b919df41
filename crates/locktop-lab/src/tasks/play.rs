//! The play: everything that goes on while the tasks are played, and how it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::ground::Ground;
use super::shared::{Shared, now};
use super::{Outcome, Summary, TasksError, chaos, count, recovery};
use crate::contest::Game;
use crate::scenario::SCHEMA;
use locktop_base::clock;
use locktop_tasks::schema::SchemaName;
use pg_connect::connect::connect;

/// How often a worker that ended is looked for.
const WATCH: Duration = Duration::from_millis(50);
/// How often tasks are made due again.
const REPLAN: Duration = Duration::from_millis(500);
/// Until a lost server is tried again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long those that were just woken have for noticing, and all for ending.
const AWAKENING: Duration = Duration::from_secs(3);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// How often the sessions of workers that ended are looked for before the schema is removed.
const REMOVALS: u32 = 50;

/// A running play. Dropping it ends the workers at once.
#[derive(Debug)]
pub struct Play {
    shared: Arc<Shared>,
    loops: Vec<JoinHandle<()>>,
    games: Vec<Box<dyn Game>>,
    since: Instant,
}

impl Play {
    /// What goes on from now on: workers are replaced, tasks are made due, mishaps happen, and somebody recovers.
    pub(super) fn begin(shared: Arc<Shared>) -> Self {
        let mut loops = Vec::new();
        if shared.options.workers > 0 {
            loops = vec![
                tokio::spawn(watch(Arc::clone(&shared))),
                tokio::spawn(replan(Arc::clone(&shared))),
                tokio::spawn(chaos::keep(Arc::clone(&shared))),
                tokio::spawn(recovery::keep(Arc::clone(&shared))),
            ];
        }
        Self { shared, loops, games: Vec::new(), since: clock::monotonic() }
    }

    /// What is played beside the tasks.
    pub(super) fn add(&mut self, game: Box<dyn Game>) {
        self.games.push(game);
    }

    /// The schema of the task tables.
    #[must_use]
    pub fn schema(&self) -> &SchemaName {
        &self.shared.ground.schema
    }

    /// Servers of Redis that are played on, as URLs in sets.
    #[must_use]
    pub fn redis(&self) -> Vec<Vec<String>> {
        self.games.iter().flat_map(|game| game.redis()).collect()
    }

    /// The numbers as they are now.
    ///
    /// # Errors
    /// When the server does not give them.
    pub async fn outcome(&self) -> Result<Outcome, TasksError> {
        let client = connect(&self.shared.ground.info).await?.client;
        self.count(&client).await
    }

    async fn count(&self, client: &Client) -> Result<Outcome, TasksError> {
        let record = self.shared.record().clone();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let (processes, lost, complaint) = {
            let crew = self.shared.crew();
            (crew.started(), crew.lost, crew.complaint.clone())
        };
        let mut summary = Summary {
            workers: number(self.shared.options.workers),
            tasks: number(self.shared.options.tasks),
            kills: record.kills,
            stops: record.stopped,
            overslept: record.overslept,
            cuts: record.cuts,
            processes,
            lost_workers: lost,
            seconds: self.since.elapsed().as_secs_f64(),
            seed: self.shared.options.seed,
            ..Summary::default()
        };
        let counted = count::count(client, &self.shared.ground, &record.stops, &mut summary).await;
        let verdict = counted.map_err(TasksError::server("the numbers"))?;
        let mut outcome = Outcome::of(summary, verdict.example.as_deref(), complaint.as_deref());
        for game in &self.games {
            outcome.add(game.count(client).await.map_err(TasksError::server("the numbers"))?);
        }
        Ok(outcome)
    }

    /// Wakes those that stand still, tells all to end, kills who does not, and counts.
    ///
    /// # Errors
    /// When the server does not give the numbers; the workers are gone all the same.
    pub async fn finish(&mut self) -> Result<Outcome, TasksError> {
        for part in self.loops.drain(..) {
            part.abort();
            let _ = part.await;
        }
        // Each goes on to the end of its own: all at the same time.
        let games = join_all(self.games.iter_mut().map(|game| game.finish()));
        let shared = &self.shared;
        let tasks = async {
            let outcome = settle(shared).await;
            dismiss(shared).await;
            outcome
        };
        let (outcome, _) = tokio::join!(tasks, games);
        outcome?;
        let client = connect(&self.shared.ground.info).await?.client;
        self.count(&client).await
    }

    /// Ends the workers at once and removes the schema.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn remove(mut self) -> Result<(), TasksError> {
        for part in self.loops.drain(..) {
            part.abort();
            let _ = part.await;
        }
        self.shared.crew().end();
        self.games.clear();
        remove(&self.shared.ground).await
    }

    /// Ends the workers at once, and answers with what removes the schema, on another runtime.
    pub(crate) fn end(self) -> impl Future<Output = Result<(), TasksError>> + Send + use<> {
        let ground = self.shared.ground.clone();
        drop(self);
        async move { remove(&ground).await }
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        self.loops.iter().for_each(JoinHandle::abort);
        self.shared.crew().end();
    }
}

/// Wakes those that stand still, and gives them the time to notice what they have lost.
async fn settle(shared: &Shared) -> Result<(), TasksError> {
    let client = connect(&shared.ground.info).await?.client;
    let now = now(&client).await.map_err(TasksError::server("the time"))?;
    let asleep = chaos::wake_all(shared, now);
    let sql = format!("SELECT count(*) FROM {SCHEMA}.witness WHERE ended IS NULL AND process = ANY ($1)");
    let start = clock::monotonic();
    while !asleep.is_empty() && start.elapsed() < AWAKENING {
        let row = client.query_one(&sql, &[&asleep]).await.map_err(TasksError::server("the witnesses"))?;
        if row.try_get::<_, i64>(0).is_ok_and(|left| left == 0) {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

async fn dismiss(shared: &Shared) {
    shared.crew().dismiss();
    let start = clock::monotonic();
    while !shared.crew().is_gone() && start.elapsed() < SHUTDOWN_TIMEOUT {
        tokio::time::sleep(POLL).await;
    }
    shared.crew().end();
}

/// The sessions of workers that were killed may take a moment to go.
pub(super) async fn remove(ground: &Ground) -> Result<(), TasksError> {
    let mut outcome = ground.remove().await;
    for _ in 0..REMOVALS {
        let Err(TasksError::Schema(locktop_tasks::schema::SchemaError::InUse { .. })) = &outcome else {
            break;
        };
        tokio::time::sleep(POLL * 5).await;
        outcome = ground.remove().await;
    }
    outcome
}

/// Replaces workers that have ended.
async fn watch(shared: Arc<Shared>) {
    loop {
        // One that cannot be started now may be later.
        let _ = shared.crew().fill();
        tokio::time::sleep(WATCH).await;
    }
}

async fn replan(shared: Arc<Shared>) {
    loop {
        if let Some(client) = shared.connect("planner").await {
            while shared.ground.replan(&client, &shared.plan).await.is_ok() {
                if !shared.options.counted {
                    // When this fails, so does the next.
                    let _ = shared.ground.forget(&client).await;
                }
                tokio::time::sleep(REPLAN).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
