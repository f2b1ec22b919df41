//! Scheduled tasks: each has its time, and one of many workers runs it then.
//!
//! ```no_run
//! use locktop_tasks::scheduled_task::ScheduledTasks;
//!
//! # async fn example(client: &tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let tasks = ScheduledTasks::default();
//! tasks.add(client, "nightly report", "report", Some("0 3 * * *"), &["sales"]).await?;
//! for run in tasks.fetch(client, "worker-1", 2).await? {
//!     let what: Vec<String> = run.payload()?;
//!     println!("{} of {}", run.name, what.join(", "));
//!     if !tasks.finish(client, &run, Ok(())).await? {
//!         println!("{} was not ours any more", run.name);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Each call must be a transaction of its own: take, commit, work, finish. A task is taken with its advisory lock, with
//! the key [`ScheduledTasks::key`], which the session holds until the finish commits or the session ends. Then another
//! worker may have the task, so **the work must stop when its connection ends**, and a write that must happen only once
//! belongs in the transaction that finishes the task. A finish is fenced: it counts only for what this session still has.
//! A task that failed is tried again after a pause, up to its last attempt; after that its schedule counts.
//!
//! A session is a server session: through a pooler in transaction mode the lock would belong to another client.
//! [`pooler`](locktop_locks::pooler) detects one.
//!
//! This is the plain API, for any client. `locktop_tasks::work_session` does the same on a connection of its own with the
//! settings that such a session needs, refuses poolers, and is notified when something is due; `locktop worker` is the
//! whole loop. Executions that were left behind are recovered by `locktop recover`.
//!
//! In SQL: `get_task_lock_id`, `try_acquire_task_lock`, `fetch_tasks`, `heartbeat_tasks`, `try_release_task_lock`,
//! `give_back_task`, `release_idle_task_keys`, and the views `running_tasks`, `overdue_tasks`, `task_locks` and
//! `task_history`.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::types::Type;
use tokio_postgres::{GenericClient, Row};

use locktop_locks::Error;
use locktop_locks::SchemaName;
use locktop_locks::call::{Parameter, column, row, rows};

/// An execution of a task that this session has: until it is finished or released, or the session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "its key is held until it is finished or released, or the session ends"]
pub struct Execution {
    /// `task_execution_log.id`: its row in the log.
    pub id: i64,
    /// `scheduled_tasks.id` of the task that is executed.
    pub task_id: i32,
    /// `scheduled_tasks.task_name`, unique in the schema.
    pub name: String,
    /// `scheduled_tasks.task_type`: the kind of work, by which a worker chooses its action.
    pub kind: String,
    /// `scheduled_tasks.payload`: JSON, as the server writes it; `None` for NULL.
    pub json: Option<String>,
    /// The name of the worker that took it (`worker_id`).
    pub worker: String,
    /// From 1, since the task last completed or was given up.
    pub attempt: i32,
    /// Attempts that it has altogether; if the last one fails, its schedule counts again.
    pub max_attempts: i32,
    /// How long it may take; beyond that it is slow.
    pub timeout: Duration,
    /// The key of the advisory lock that the session holds for it.
    pub lock_id: i64,
}

impl Execution {
    /// The payload; a missing one is read as null.
    ///
    /// # Errors
    /// If the payload has another type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.json.as_deref().unwrap_or("null"))
    }
}

/// The scheduled tasks of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScheduledTasks {
    /// The schema that the tables are in.
    pub schema: SchemaName,
}

impl ScheduledTasks {
    /// Adds a task and returns its id; `None` if there is one with this name, which stays as it is. The schedule is a cron expression of five fields, in UTC; without one the task runs
    /// once, immediately.
    ///
    /// # Errors
    /// If the payload cannot be written as JSON, the schedule is invalid, or the connection fails.
    pub async fn add<C: GenericClient + Sync, P: Serialize + Sync>(
        &self,
        client: &C,
        name: &str,
        kind: &str,
        schedule: Option<&str>,
        payload: &P,
    ) -> Result<Option<i32>, Error> {
        const WHAT: &str = "scheduled_tasks";
        let payload = serde_json::to_string(payload)
            .map_err(|error| Error::Request(format!("no payload: {error}").into()))?;
        let sql =
            "INSERT INTO @schema@.scheduled_tasks (task_name, task_type, schedule_cron, payload, next_run_at)
             VALUES ($1, $2, $3, $4::text::jsonb, CASE WHEN $3::text IS NULL THEN clock_timestamp() END)
             ON CONFLICT (task_name) DO NOTHING RETURNING id";
        let parameters: &[Parameter<'_>] =
            &[(&name, Type::TEXT), (&kind, Type::TEXT), (&schedule, Type::TEXT), (&payload, Type::TEXT)];
        let added = rows(client, &self.schema, WHAT, sql, parameters).await?;
        added.first().map(|row| column(WHAT, row, 0)).transpose()
    }

    /// The advisory lock key of the task with this name.
    ///
    /// # Errors
    /// If there is no such task, or the connection fails.
    pub async fn key<C: GenericClient + Sync>(&self, client: &C, name: &str) -> Result<i64, Error> {
        const WHAT: &str = "get_task_lock_id";
        let sql = "SELECT @schema@.get_task_lock_id($1)";
        column(WHAT, &row(client, &self.schema, WHAT, sql, &[(&name, Type::TEXT)]).await?, 0)
    }

    /// Takes this task for this session, in the name of a worker. `None` if it is not due or not enabled, or a session,
    /// including this one, already has it.
    ///
    /// # Errors
    /// If there is no such task, the server refuses, or the connection fails; then the session may have the task, and must be
    /// ended.
    pub async fn try_acquire<C: GenericClient + Sync>(
        &self,
        client: &C,
        task_id: i32,
        worker: &str,
    ) -> Result<Option<Execution>, Error> {
        const WHAT: &str = "try_acquire_task_lock";
        let parameters: &[Parameter<'_>] = &[(&task_id, Type::INT4), (&worker, Type::TEXT)];
        let sql = "SELECT @schema@.try_acquire_task_lock($1, $2)";
        if !column::<bool>(WHAT, &row(client, &self.schema, WHAT, sql, parameters).await?, 0)? {
            return Ok(None);
        }
        // A separate statement: one statement does not see what its own functions have written.
        let sql = "SELECT e.id, e.task_id, t.task_name, t.task_type, t.payload::text, e.attempt, t.max_attempts,
                    extract(epoch FROM t.timeout)::float8, e.lock_id
               FROM @schema@.task_execution_log e JOIN @schema@.scheduled_tasks t ON t.id = e.task_id
              WHERE e.task_id = $1 AND e.worker_id = $2 AND e.status = 'running' AND e.backend_pid = pg_backend_pid()";
        execution(WHAT, &row(client, &self.schema, WHAT, sql, parameters).await?, worker).map(Some)
    }

    /// Takes due tasks that no session has, at most the given number, the highest priority first. They are all lost together
    /// with the session.
    ///
    /// # Errors
    /// If the server refuses, and then [`ScheduledTasks::release_idle_keys`] must be called; or if the connection fails.
    pub async fn fetch<C: GenericClient + Sync>(
        &self,
        client: &C,
        worker: &str,
        at_most: i32,
    ) -> Result<Vec<Execution>, Error> {
        const WHAT: &str = "fetch_tasks";
        let sql = "SELECT execution_id, task_id, task_name, task_type, payload::text, attempt, max_attempts,
                    timeout_seconds, lock_id
               FROM @schema@.fetch_tasks($1, $2)";
        let parameters: &[Parameter<'_>] = &[(&worker, Type::TEXT), (&at_most, Type::INT4)];
        let rows = rows(client, &self.schema, WHAT, sql, parameters).await?;
        rows.iter().map(|row| execution(WHAT, row, worker)).collect()
    }

    /// A sign of life: returns the id of each execution that this worker still has in this session. The worker must stop the
    /// others.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn heartbeat<C: GenericClient + Sync>(
        &self,
        client: &C,
        worker: &str,
    ) -> Result<Vec<i64>, Error> {
        const WHAT: &str = "heartbeat_tasks";
        let sql = "SELECT h.id FROM @schema@.heartbeat_tasks($1) h (id)";
        let rows = rows(client, &self.schema, WHAT, sql, &[(&worker, Type::TEXT)]).await?;
        rows.iter().map(|row| column(WHAT, row, 0)).collect()
    }

    /// Ends an execution, as completed or as failed with the error; plans the next run, and releases the lock when that
    /// commits. False if it was no longer this session's: nothing was changed then.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails; then it is not known whether the end counted.
    pub async fn finish<C: GenericClient + Sync>(
        &self,
        client: &C,
        execution: &Execution,
        outcome: Result<(), &str>,
    ) -> Result<bool, Error> {
        const WHAT: &str = "try_release_task_lock";
        let status = if outcome.is_ok() { "completed" } else { "failed" };
        let error = outcome.err();
        let sql = "SELECT @schema@.try_release_task_lock($1, $2, $3, $4)";
        let parameters: &[Parameter<'_>] = &[
            (&execution.task_id, Type::INT4),
            (&execution.worker, Type::TEXT),
            (&status, Type::TEXT),
            (&error, Type::TEXT),
        ];
        column(WHAT, &row(client, &self.schema, WHAT, sql, parameters).await?, 0)
    }

    /// Returns an execution that was not done: the task is due as before, and the attempt does not count. False if it was no
    /// longer this session's.
    ///
    /// # Errors
    /// As for [`ScheduledTasks::finish`].
    pub async fn give_back<C: GenericClient + Sync>(
        &self,
        client: &C,
        execution: &Execution,
    ) -> Result<bool, Error> {
        const WHAT: &str = "give_back_task";
        let sql = "SELECT @schema@.give_back_task($1, $2)";
        let parameters: &[Parameter<'_>] =
            &[(&execution.task_id, Type::INT4), (&execution.worker, Type::TEXT)];
        column(WHAT, &row(client, &self.schema, WHAT, sql, parameters).await?, 0)
    }

    /// Releases the keys of tasks that this session has no execution of, as after a refused fetch; the keys of the tasks in
    /// `working` are kept. Returns the number of locks released.
    ///
    /// # Errors
    /// If the server refuses, or the connection fails.
    pub async fn release_idle_keys<C: GenericClient + Sync>(
        &self,
        client: &C,
        working: &[i32],
    ) -> Result<i32, Error> {
        const WHAT: &str = "release_idle_task_keys";
        let sql = "SELECT @schema@.release_idle_task_keys($1)";
        column(WHAT, &row(client, &self.schema, WHAT, sql, &[(&working, Type::INT4_ARRAY)]).await?, 0)
    }
}

fn execution(what: &'static str, row: &Row, worker: &str) -> Result<Execution, Error> {
    let seconds: f64 = column(what, row, 7)?;
    Ok(Execution {
        id: column(what, row, 0)?,
        task_id: column(what, row, 1)?,
        name: column(what, row, 2)?,
        kind: column(what, row, 3)?,
        json: column(what, row, 4)?,
        worker: worker.to_owned(),
        attempt: column(what, row, 5)?,
        max_attempts: column(what, row, 6)?,
        timeout: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        lock_id: column(what, row, 8)?,
    })
}
