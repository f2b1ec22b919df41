//! What the tasks run on: a schema with the task tables and functions, the tasks in it, and the table of the witnesses.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::witness;
use crate::scenario::SCHEMA;
use crate::workers::{Plan, TasksError};
use locktop_tasks::schema::{self, SchemaError, SchemaName};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

/// The schema on a server of the user's. On an embedded one it has the usual name.
pub const TASKS_SCHEMA: &str = "locktop_demo_tasks";

/// Attempts before a task is given up, and the seconds before the second one. Never less than two: somebody whose session
/// was ended must have noticed by then, on a busy machine, too.
const ATTEMPTS: i32 = 5;
const RETRY: f64 = 10.0;
const SHORTEST_RETRY: f64 = 2.0;

/// The schema of the tasks, and how to get there.
#[derive(Debug, Clone)]
pub(super) struct TaskTables {
    /// How to connect; its sessions have the setting that says when something is an orphan.
    pub(super) info: ConnInfo,
    pub(super) schema: SchemaName,
    /// Somebody else's tables and functions are in the schema.
    pub(super) recipe: bool,
}

impl TaskTables {
    /// Makes the schema. One that is there is left alone.
    pub(super) async fn create(&self, recipe: Option<&str>) -> Result<Client, TasksError> {
        let mut client = connect(&self.info).await?.client;
        if let Some(sql) = recipe {
            self.install(&client, sql).await?;
            return Ok(client);
        }
        match schema::install(&mut client, &self.schema).await {
            Ok(done) if done.from.is_none() => Ok(client),
            Ok(_) | Err(SchemaError::Foreign(_) | SchemaError::Newer { .. }) => {
                Err(TasksError::Exists(self.schema.as_str().to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the table of the witnesses. One that is there is what a killed demo left: the schema that was not there says that
    /// none runs.
    pub(super) async fn make_witness_table(&self, client: &Client) -> Result<(), TasksError> {
        let table = format!("DROP TABLE IF EXISTS {SCHEMA}.witness; {}", witness::table());
        client.batch_execute(&table).await.map_err(TasksError::server("a table of the witnesses"))
    }

    /// Somebody's own statements, in a schema that is ours.
    async fn install(&self, client: &Client, sql: &str) -> Result<(), TasksError> {
        let name = self.schema.quoted();
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await.map_err(|error| {
            if error.code() == Some(&SqlState::DUPLICATE_SCHEMA) {
                TasksError::Exists(self.schema.as_str().to_owned())
            } else {
                TasksError::server("a schema")(error)
            }
        })?;
        let script = format!("SET search_path TO {name}, public; SET client_min_messages TO warning; {sql}");
        if let Err(error) = client.batch_execute(&script).await {
            let message = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
            let _ = self.remove().await;
            return Err(TasksError::Recipe(message));
        }
        client
            .batch_execute("RESET search_path; RESET client_min_messages")
            .await
            .map_err(TasksError::server("settings"))
    }

    /// Puts the tasks in.
    pub(super) async fn insert_tasks(&self, client: &Client, plan: &Plan) -> Result<(), TasksError> {
        let tasks = format!("{}.scheduled_tasks", self.schema.quoted());
        let sql = if self.recipe {
            // Whatever examples came with it are not ours to run.
            let clean = format!("DELETE FROM {tasks}");
            client.batch_execute(&clean).await.map_err(TasksError::server("its tasks"))?;
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
        let given = if self.recipe { parameters.get(..4) } else { Some(parameters.as_slice()) };
        client.execute(&sql, given.unwrap_or_default()).await.map_err(TasksError::server("its tasks"))?;
        Ok(())
    }

    /// Makes what has run due again, in scaled time: a cron expression cannot name a second.
    pub(super) async fn replan(&self, client: &Client, plan: &Plan) -> Result<(), tokio_postgres::Error> {
        let schema = self.schema.quoted();
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

    /// Forgets what was witnessed long ago.
    pub(super) async fn delete_old(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let sql =
            format!("DELETE FROM {SCHEMA}.witness WHERE last < clock_timestamp() - interval '10 minutes'");
        client.execute(&sql, &[]).await.map(drop)
    }

    /// Removes the schema; the rest goes with the [`SCHEMA`].
    pub(super) async fn remove(&self) -> Result<(), TasksError> {
        let mut client = connect(&self.info).await?.client;
        if self.recipe {
            let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema.quoted());
            return client.batch_execute(&drop).await.map_err(TasksError::server("removing its schema"));
        }
        // Leases of those that were killed would count as held to the end of their terms.
        let expire = format!("DELETE FROM {}.distlock", self.schema.quoted());
        client.batch_execute(&expire).await.map_err(TasksError::server("removing its leases"))?;
        schema::remove(&mut client, &self.schema).await?;
        Ok(())
    }
}
