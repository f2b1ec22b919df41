//! The objects that the tasks run on: a schema with the task tables and functions, the tasks in it, and the table of the
//! witnesses.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::witness;
use crate::contest::Environment;
use crate::scenario::SCHEMA;
use crate::workers::TasksError;
use locktop_tasks::schema::{self, SchemaError};
use pg_connect::connect::connect;

/// The schema on the user's server. On an embedded server it has the default name.
pub const TASKS_SCHEMA: &str = "locktop_demo_tasks";

/// Attempts before a task is given up, and the seconds before the second attempt. Never less than two seconds: a worker
/// whose session was terminated must have noticed by then, even on a busy machine.
const ATTEMPTS: i32 = 5;
const RETRY: f64 = 10.0;
const SHORTEST_RETRY: f64 = 2.0;

pub(super) async fn create(environment: &Environment) -> Result<Client, TasksError> {
    let mut client = connect(&environment.info).await?.client;
    if let Some(sql) = &environment.options.recipe {
        install(environment, &client, sql).await?;
        return Ok(client);
    }
    match schema::install(&mut client, &environment.schema).await {
        Ok(done) if done.from.is_none() => Ok(client),
        Ok(_) | Err(SchemaError::Foreign(_) | SchemaError::Newer { .. }) => {
            Err(TasksError::Exists(environment.schema.as_str().to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates the table of the witnesses. An existing one was left by a killed demo: no demo is running, since the tasks'
/// schema did not exist.
pub(super) async fn make_witness_table(client: &Client) -> Result<(), TasksError> {
    let table = format!("DROP TABLE IF EXISTS {SCHEMA}.witness; {}", witness::table());
    client.batch_execute(&table).await.map_err(TasksError::server("a table of the witnesses"))
}

async fn install(environment: &Environment, client: &Client, sql: &str) -> Result<(), TasksError> {
    let name = environment.schema.quoted();
    client.batch_execute(&format!("CREATE SCHEMA {name}")).await.map_err(|error| {
        if error.code() == Some(&SqlState::DUPLICATE_SCHEMA) {
            TasksError::Exists(environment.schema.as_str().to_owned())
        } else {
            TasksError::server("a schema")(error)
        }
    })?;
    let script = format!("SET search_path TO {name}, public; SET client_min_messages TO warning; {sql}");
    if let Err(error) = client.batch_execute(&script).await {
        let message = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
        let _ = remove(environment).await;
        return Err(TasksError::Recipe(message));
    }
    client
        .batch_execute("RESET search_path; RESET client_min_messages")
        .await
        .map_err(TasksError::server("settings"))
}

pub(super) async fn insert_tasks(environment: &Environment, client: &Client) -> Result<(), TasksError> {
    let (tasks, plan) =
        (format!("{}.scheduled_tasks", environment.schema.quoted()), &environment.config.plan);
    let sql = if environment.config.recipe {
        // Example tasks that came with the recipe are not run.
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
    let given = if environment.config.recipe { parameters.get(..4) } else { Some(parameters.as_slice()) };
    client.execute(&sql, given.unwrap_or_default()).await.map_err(TasksError::server("its tasks"))?;
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

pub(super) async fn remove(environment: &Environment) -> Result<(), TasksError> {
    let mut client = connect(&environment.info).await?.client;
    if environment.config.recipe {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", environment.schema.quoted());
        return client.batch_execute(&drop).await.map_err(TasksError::server("removing its schema"));
    }
    // Leases of killed workers would count as held to the end of their terms.
    let expire = format!("DELETE FROM {}.distlock", environment.schema.quoted());
    client.batch_execute(&expire).await.map_err(TasksError::server("removing its leases"))?;
    schema::remove(&mut client, &environment.schema).await?;
    Ok(())
}
