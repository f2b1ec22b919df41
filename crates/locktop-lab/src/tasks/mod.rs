//! Workers that compete for tasks: separate processes, tasks of a second to ten minutes in scaled time, workers that are
//! killed, stopped and cut off, a recovery, and witnesses of what really ran when. All contests, including this one, run
//! in one schema of the demo's own.

pub mod child;
mod contest;
mod summary;
mod tables;
mod witness;

pub use summary::{Outcome, Summary};
pub use tables::TASKS_SCHEMA;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_postgres::Client;

pub use super::contest::TasksOptions;
use super::contest::{Environment, Runner};
pub use super::workers::TasksError;
use locktop_base::clock;
use locktop_tasks::schema::{SchemaError, SchemaName};
use pg_connect::connect::connect;

/// Interval between, and number of, attempts to remove the schema while sessions of ended workers still exist.
const POLL: Duration = Duration::from_millis(100);
const REMOVALS: u32 = 50;

/// All contests of a demo. Dropping it ends the workers at once.
#[derive(Debug)]
pub struct RunningContests {
    environment: Environment,
    contests: Vec<Runner>,
    since: Instant,
}

impl RunningContests {
    /// Creates the schema, which must not exist; returns a connection for [`Self::start`].
    pub(crate) async fn create(environment: &Environment) -> Result<Client, TasksError> {
        tables::create(environment).await
    }

    /// Inserts the tasks and starts the workers. If that fails, the schema is removed.
    pub(crate) async fn start(environment: Environment, client: &Client) -> Result<Self, TasksError> {
        let mut running = Self { environment, contests: Vec::new(), since: clock::monotonic() };
        match running.begin(client).await {
            Ok(()) => Ok(running),
            Err(error) => {
                // The first error is the one to report.
                let _ = running.remove().await;
                Err(error)
            }
        }
    }

    async fn begin(&mut self, client: &Client) -> Result<(), TasksError> {
        tables::make_witness_table(client).await?;
        tables::insert_tasks(&self.environment, client).await?;
        self.since = clock::monotonic();
        if self.environment.options.workers > 0 {
            self.contests.push(contest::begin(&self.environment)?);
        }
        for contest in &self.environment.options.contests {
            self.contests.push(Box::pin(contest.begin(&self.environment, client)).await?);
        }
        Ok(())
    }

    #[must_use]
    pub fn schema(&self) -> &SchemaName {
        &self.environment.schema
    }

    /// URLs of the Redis servers that the contests use, in sets that decide together.
    #[must_use]
    pub fn redis(&self) -> Vec<Vec<String>> {
        self.contests.iter().flat_map(Runner::redis).collect()
    }

    pub async fn outcome(&self) -> Result<Outcome, TasksError> {
        let client = connect(&self.environment.info).await?.client;
        self.count(&client).await
    }

    async fn count(&self, client: &Client) -> Result<Outcome, TasksError> {
        let mut outcome = Outcome::default();
        (outcome.summary.seconds, outcome.summary.seed) =
            (self.since.elapsed().as_secs_f64(), self.environment.options.seed);
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
        join_all(self.contests.iter_mut().map(Runner::finish)).await;
        self.outcome().await
    }

    pub async fn remove(self) -> Result<(), TasksError> {
        self.end().await
    }

    /// Ends the workers at once, and returns a future that removes the schema, on another runtime.
    pub(crate) fn end(self) -> impl Future<Output = Result<(), TasksError>> + Send + use<> {
        let environment = self.environment.clone();
        drop(self);
        async move { remove(&environment).await }
    }
}

/// The sessions of killed workers may take a moment to end.
pub(crate) async fn remove(environment: &Environment) -> Result<(), TasksError> {
    let mut outcome = tables::remove(environment).await;
    for _ in 0..REMOVALS {
        let Err(TasksError::Schema(SchemaError::InUse { .. })) = &outcome else { break };
        tokio::time::sleep(POLL).await;
        outcome = tables::remove(environment).await;
    }
    outcome
}
