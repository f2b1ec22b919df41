//! The play: the tasks and what is played beside them, and how it ends.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_postgres::Client;

use super::ground::Ground;
use super::{Outcome, TasksError};
use crate::contest::Game;
use locktop_base::clock;
use locktop_tasks::schema::{SchemaError, SchemaName};
use pg_connect::connect::connect;

/// How often, and how many times, the sessions of workers that ended are looked for before the schema is removed.
const POLL: Duration = Duration::from_millis(100);
const REMOVALS: u32 = 50;

/// A running play. Dropping it ends the workers at once.
#[derive(Debug)]
pub struct Play {
    ground: Ground,
    games: Vec<Box<dyn Game>>,
    seed: u64,
    since: Instant,
}

impl Play {
    pub(super) fn new(ground: Ground, seed: u64) -> Self {
        Self { ground, games: Vec::new(), seed, since: clock::monotonic() }
    }

    /// What is played from now on, too.
    pub(super) fn add(&mut self, game: Box<dyn Game>) {
        self.games.push(game);
    }

    /// The schema of the task tables.
    #[must_use]
    pub fn schema(&self) -> &SchemaName {
        &self.ground.schema
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
        let client = connect(&self.ground.info).await?.client;
        self.count(&client).await
    }

    async fn count(&self, client: &Client) -> Result<Outcome, TasksError> {
        let mut outcome = Outcome::default();
        (outcome.summary.seconds, outcome.summary.seed) = (self.since.elapsed().as_secs_f64(), self.seed);
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
        // Each goes on to the end of its own: all at the same time.
        join_all(self.games.iter_mut().map(|game| game.finish())).await;
        self.outcome().await
    }

    /// Ends the workers at once and removes the schema.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn remove(self) -> Result<(), TasksError> {
        self.end().await
    }

    /// Ends the workers at once, and answers with what removes the schema, on another runtime.
    pub(crate) fn end(self) -> impl Future<Output = Result<(), TasksError>> + Send + use<> {
        let ground = self.ground.clone();
        drop(self);
        async move { remove(&ground).await }
    }
}

/// The sessions of workers that were killed may take a moment to go.
pub(super) async fn remove(ground: &Ground) -> Result<(), TasksError> {
    let mut outcome = ground.remove().await;
    for _ in 0..REMOVALS {
        let Err(TasksError::Schema(SchemaError::InUse { .. })) = &outcome else { break };
        tokio::time::sleep(POLL).await;
        outcome = ground.remove().await;
    }
    outcome
}
