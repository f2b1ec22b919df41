//! Workers that compete for tasks: separate processes, tasks of a second to ten minutes in scaled time, workers that are
//! killed, stopped and cut off, a recovery, and witnesses of what really ran when. All contests, including this one, run
//! in one schema of the demo's own.

pub mod child;
mod contest;
mod summary;
mod witness;

pub use summary::{Outcome, Summary};

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::DemoError;
pub use super::contest::TasksOptions;
use super::contest::{Environment, Runner};
use crate::scenario::SCHEMA;
use locktop_base::clock;
use locktop_tasks::schema::{self, SchemaError, SchemaName};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

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
    pub(crate) async fn create(environment: &Environment) -> Result<Client, DemoError> {
        create(environment).await
    }

    /// Inserts the tasks and starts the workers. If that fails, the schema is removed.
    pub(crate) async fn start(environment: Environment, client: &Client) -> Result<Self, DemoError> {
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

    async fn begin(&mut self, client: &Client) -> Result<(), DemoError> {
        make_witness_table(client).await?;
        insert_tasks(&self.environment, client).await?;
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

    pub async fn outcome(&self) -> Result<Outcome, DemoError> {
        let client = open(&self.environment.info).await?;
        let mut outcome = Outcome::default();
        (outcome.summary.seconds, outcome.summary.seed) =
            (self.since.elapsed().as_secs_f64(), self.environment.options.seed);
        for contest in &self.contests {
            outcome.add(contest.count(&client).await.map_err(DemoError::server("the numbers"))?);
        }
        Ok(outcome)
    }

    /// Resumes paused workers, requests all to end, kills those that do not, and counts.
    ///
    /// # Errors
    /// If the server does not provide the numbers; the workers have ended all the same.
    pub async fn finish(&mut self) -> Result<Outcome, DemoError> {
        // In parallel, since each waits for its own end.
        join_all(self.contests.iter_mut().map(Runner::finish)).await;
        self.outcome().await
    }

    pub async fn remove(self) -> Result<(), DemoError> {
        self.end().await
    }

    /// Ends the workers at once, and returns a future that removes the schema, on another runtime.
    pub(crate) fn end(self) -> impl Future<Output = Result<(), DemoError>> + Send + use<> {
        let environment = self.environment.clone();
        drop(self);
        async move { remove(&environment).await }
    }
}

/// The sessions of killed workers may take a moment to end.
pub(crate) async fn remove(environment: &Environment) -> Result<(), DemoError> {
    let mut outcome = remove_now(environment).await;
    for _ in 0..REMOVALS {
        let Err(DemoError::Schema(SchemaError::InUse { .. })) = &outcome else { break };
        tokio::time::sleep(POLL).await;
        outcome = remove_now(environment).await;
    }
    outcome
}

/// The schema on the user's server. On an embedded server it has the default name.
pub const TASKS_SCHEMA: &str = "locktop_demo_tasks";

/// Attempts before a task is given up, and the seconds before the second attempt. Never less than two seconds: a worker
/// whose session was terminated must have noticed by then, even on a busy machine.
const ATTEMPTS: i32 = 5;
const RETRY: f64 = 10.0;
const SHORTEST_RETRY: f64 = 2.0;

async fn open(info: &ConnInfo) -> Result<Client, DemoError> {
    Ok(connect(info).await.map_err(DemoError::cannot("connect for the demo's tasks"))?.client)
}

fn exists(environment: &Environment) -> DemoError {
    let name = environment.schema.as_str();
    DemoError::Other(format!(
        "the schema {name} already exists, and the demo would create and drop it: another demo is running here, or one was killed; \
         \"locktop schema drop --schema {name}\" removes the rest"
    ))
}

async fn create(environment: &Environment) -> Result<Client, DemoError> {
    let mut client = open(&environment.info).await?;
    if let Some(sql) = &environment.options.recipe {
        install(environment, &client, sql).await?;
        return Ok(client);
    }
    match schema::install(&mut client, &environment.schema).await {
        Ok(done) if done.from.is_none() => Ok(client),
        Ok(_) | Err(SchemaError::Foreign(_) | SchemaError::Newer { .. }) => Err(exists(environment)),
        Err(error) => Err(error.into()),
    }
}

/// Creates the table of the witnesses. An existing one was left by a killed demo: no demo is running, since the tasks'
/// schema did not exist.
async fn make_witness_table(client: &Client) -> Result<(), DemoError> {
    let table = format!("DROP TABLE IF EXISTS {SCHEMA}.witness; {}", witness::table());
    client.batch_execute(&table).await.map_err(DemoError::server("a table of the witnesses"))
}

async fn install(environment: &Environment, client: &Client, sql: &str) -> Result<(), DemoError> {
    let name = environment.schema.quoted();
    client.batch_execute(&format!("CREATE SCHEMA {name}")).await.map_err(|error| {
        if error.code() == Some(&SqlState::DUPLICATE_SCHEMA) {
            exists(environment)
        } else {
            DemoError::server("a schema")(error)
        }
    })?;
    let script = format!("SET search_path TO {name}, public; SET client_min_messages TO warning; {sql}");
    if let Err(error) = client.batch_execute(&script).await {
        let message = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
        let _ = remove_now(environment).await;
        return Err(DemoError::Other(format!("the recipe cannot be used: {message}")));
    }
    client
        .batch_execute("RESET search_path; RESET client_min_messages")
        .await
        .map_err(DemoError::server("settings"))
}

async fn insert_tasks(environment: &Environment, client: &Client) -> Result<(), DemoError> {
    let (tasks, plan) =
        (format!("{}.scheduled_tasks", environment.schema.quoted()), &environment.config.plan);
    let sql = if environment.config.recipe {
        // Example tasks that came with the recipe are not run.
        let clean = format!("DELETE FROM {tasks}");
        client.batch_execute(&clean).await.map_err(DemoError::server("its tasks"))?;
        format!(
            "INSERT INTO {tasks} (task_name, task_type, schedule_cron, next_run_at)
             SELECT name, kind, cron, clock_timestamp() + make_interval(secs => first)
               FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) AS t (name, kind, cron, first)"
        )
    } else {
        format!(
            "INSERT INTO {tasks} (task_name, task_type, schedule_cron, next_run_at, priority, timeout, max_attempts,
                                  retry_delay, payload)
             SELECT name, kind, cron, clock_timestamp() + make_interval(secs => first), priority,
                    make_interval(secs => timeout), {ATTEMPTS}, make_interval(secs => {:.3}), payload::jsonb
               FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::int[], $6::float8[], $7::text[])
                    AS t (name, kind, cron, first, priority, timeout, payload)",
            plan.scaled(RETRY).max(SHORTEST_RETRY)
        )
    };
    let planned = plan.tasks();
    let names: Vec<&str> = planned.iter().map(|task| task.name.as_str()).collect();
    let kinds: Vec<&str> = planned.iter().map(|task| task.kind).collect();
    let crons: Vec<Option<&str>> = planned.iter().map(|task| task.cron).collect();
    let firsts: Vec<f64> = planned.iter().map(|task| plan.scaled(task.first)).collect();
    let priorities: Vec<i32> = planned.iter().map(|task| task.priority).collect();
    let timeouts: Vec<f64> = planned.iter().map(|task| plan.scaled(task.timeout)).collect();
    let payloads: Vec<String> = planned.iter().map(|task| plan.payload(task)).collect();
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [&names, &kinds, &crons, &firsts, &priorities, &timeouts, &payloads];
    let given = if environment.config.recipe { parameters.get(..4) } else { Some(parameters.as_slice()) };
    client.execute(&sql, given.unwrap_or_default()).await.map_err(DemoError::server("its tasks"))?;
    Ok(())
}

/// Makes tasks that have run due again, in scaled time: a cron expression has no seconds.
pub(super) async fn replan(environment: &Environment, client: &Client) -> Result<(), tokio_postgres::Error> {
    let (schema, plan) = (environment.schema.quoted(), &environment.config.plan);
    let sql = format!(
        "UPDATE {schema}.scheduled_tasks t
            SET next_run_at = clock_timestamp() + make_interval(secs => p.every)
           FROM unnest($1::text[], $2::float8[]) AS p (name, every)
          WHERE t.task_name = p.name AND t.is_enabled
            AND (t.next_run_at IS NULL OR t.next_run_at > clock_timestamp() + make_interval(secs => p.every))
            AND NOT EXISTS (SELECT FROM {schema}.task_execution_log e WHERE e.task_id = t.id AND e.status = 'running')"
    );
    let planned = plan.tasks();
    let names: Vec<&str> = planned.iter().map(|task| task.name.as_str()).collect();
    let everies: Vec<f64> = planned.iter().map(|task| plan.scaled(task.every)).collect();
    client.execute(&sql, &[&names, &everies]).await.map(drop)
}

pub(super) async fn delete_old(client: &Client) -> Result<(), tokio_postgres::Error> {
    let sql = format!("DELETE FROM {SCHEMA}.witness WHERE last < clock_timestamp() - interval '10 minutes'");
    client.execute(&sql, &[]).await.map(drop)
}

async fn remove_now(environment: &Environment) -> Result<(), DemoError> {
    let mut client = open(&environment.info).await?;
    if environment.config.recipe {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", environment.schema.quoted());
        return client.batch_execute(&drop).await.map_err(DemoError::server("removing its schema"));
    }
    // Leases of killed workers would count as held to the end of their terms.
    let expire = format!("DELETE FROM {}.distlock", environment.schema.quoted());
    client.batch_execute(&expire).await.map_err(DemoError::server("removing its leases"))?;
    schema::remove(&mut client, &environment.schema).await?;
    Ok(())
}
