//! All contests that run in one schema, including the tasks, and how they end.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_postgres::Client;

use super::tables::TaskTables;
use super::{Outcome, TasksError};
use crate::contest::RunningContest;
use locktop_base::clock;
use locktop_tasks::schema::{SchemaError, SchemaName};
use pg_connect::connect::connect;

/// Interval between, and number of, attempts to remove the schema while sessions of ended workers still exist.
const POLL: Duration = Duration::from_millis(100);
const REMOVALS: u32 = 50;

#[derive(Debug)]
pub struct RunningContests {
    tables: TaskTables,
    contests: Vec<Box<dyn RunningContest>>,
    seed: u64,
    since: Instant,
}

impl RunningContests {
    pub(super) fn new(tables: TaskTables, seed: u64) -> Self {
        Self { tables, contests: Vec::new(), seed, since: clock::monotonic() }
    }

    pub(super) fn add(&mut self, contest: Box<dyn RunningContest>) {
        self.contests.push(contest);
    }

    #[must_use]
    pub fn schema(&self) -> &SchemaName {
        &self.tables.schema
    }

    /// URLs of the Redis servers that the contests use, in sets that decide together.
    #[must_use]
    pub fn redis(&self) -> Vec<Vec<String>> {
        self.contests.iter().flat_map(|contest| contest.redis()).collect()
    }

    pub async fn outcome(&self) -> Result<Outcome, TasksError> {
        let client = connect(&self.tables.info).await?.client;
        self.count(&client).await
    }

    async fn count(&self, client: &Client) -> Result<Outcome, TasksError> {
        let mut outcome = Outcome::default();
        (outcome.summary.seconds, outcome.summary.seed) = (self.since.elapsed().as_secs_f64(), self.seed);
        for contest in &self.contests {
            outcome.add(contest.count(client).await.map_err(TasksError::server("the numbers"))?);
        }
        Ok(outcome)
    }

    /// Resumes paused workers, requests all to end, kills those that do not, and counts.
    ///
    /// # Errors
    /// If the server does not provide the numbers; the workers have ended all the same.
    pub async fn finish(&mut self) -> Result<Outcome, TasksError> {
        // In parallel, since each waits for its own end.
        join_all(self.contests.iter_mut().map(|contest| contest.finish())).await;
        self.outcome().await
    }

    pub async fn remove(self) -> Result<(), TasksError> {
        self.end().await
    }

    /// Ends the workers at once, and returns a future that removes the schema, on another runtime.
    pub(crate) fn end(self) -> impl Future<Output = Result<(), TasksError>> + Send + use<> {
        let tables = self.tables.clone();
        drop(self);
        async move { remove(&tables).await }
    }
}

/// The sessions of killed workers may take a moment to end.
pub(super) async fn remove(tables: &TaskTables) -> Result<(), TasksError> {
    let mut outcome = tables.remove().await;
    for _ in 0..REMOVALS {
        let Err(TasksError::Schema(SchemaError::InUse { .. })) = &outcome else { break };
        tokio::time::sleep(POLL).await;
        outcome = tables.remove().await;
    }
    outcome
}
