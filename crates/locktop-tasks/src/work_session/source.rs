//! Where work comes from.

use strum::IntoStaticStr;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Statement};

use super::text_column::bytes;

/// Where workers tell each other that nothing is left to take. Payload: seconds until that changes, or `-`; the source; the key of the types
/// that it is about; the schema.
pub(super) const QUIET: &str = "locktop_quiet";

/// Where a worker takes work from: what is due by a plan, or what waits in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Source {
    /// Executions of tasks that are due, from `scheduled_tasks`.
    Tasks,
    /// Items that are pending and due, from `task_queue`.
    Queue,
}

impl Source {
    /// Both sources, tasks first.
    pub const ALL: [Self; 2] = [Self::Tasks, Self::Queue];

    /// The word for it in the option `--only` and in notifications.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What is asked for there, for people.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Queue => "items",
        }
    }

    /// Where the schema tells that there is something to take, or when there will be. Payload: the schema.
    pub(super) fn channel(self) -> &'static str {
        match self {
            Self::Tasks => "locktop_tasks",
            Self::Queue => "locktop_queue",
        }
    }

    /// Parameters: the worker, at most how many, and of which types. Columns as [`super::Job::read`] expects them.
    fn fetch(self, schema: &str) -> String {
        let (name, payload) = (bytes("f.task_name"), bytes("f.payload::text"));
        match self {
            Self::Tasks => format!(
                "SELECT f.execution_id, f.task_id::int8, {name}, {}, {payload}, f.attempt, f.max_attempts, f.timeout_seconds, f.lock_id \
                 FROM {schema}.fetch_tasks($1, $2, $3) f",
                bytes("f.task_type")
            ),
            // The name of an item determines its work.
            Self::Queue => format!(
                "SELECT f.task_id, f.task_id, {name}, {name}, {payload}, f.attempt, f.max_attempts, f.timeout_seconds, \
                 {schema}.queue_lock_key(f.task_id) FROM {schema}.claim_queue_items($1, $2, $3) f"
            ),
        }
    }

    /// Parameters: the task or item, the worker, the attempt, the status and the error.
    fn finish(self, schema: &str) -> String {
        match self {
            Self::Tasks => format!("SELECT {schema}.try_release_task_lock($1::int4, $2, $4, $5)"),
            Self::Queue => format!("SELECT {schema}.finish_queue_item($1, $2, $3, $4, $5)"),
        }
    }

    /// Parameters: the task or item, the worker and the attempt.
    fn give_back(self, schema: &str) -> String {
        match self {
            Self::Tasks => format!("SELECT {schema}.give_back_task($1::int4, $2)"),
            Self::Queue => format!("SELECT {schema}.give_back_queue_item($1, $2, $3)"),
        }
    }

    /// Parameter: the worker. The ids of what it has; with the attempt, where the id alone does not tell.
    fn heartbeat(self, schema: &str) -> String {
        match self {
            Self::Tasks => format!("SELECT h.id, NULL::int4 FROM {schema}.heartbeat_tasks($1) h (id)"),
            Self::Queue => {
                format!("SELECT h.task_id, h.attempt FROM {schema}.heartbeat_queue_items($1) h")
            }
        }
    }

    /// When to look again, for who takes these types (the parameter of this number). Seconds from now on, by the server's clock. An
    /// infinite time is too far off for a number.
    pub(super) fn due(self, schema: &str, types: &str) -> String {
        let function = match self {
            Self::Tasks => "next_due_at",
            Self::Queue => "next_item_due_at",
        };
        format!(
            "SELECT CASE WHEN pg_catalog.isfinite(d.moment) THEN \
             extract(epoch FROM d.moment - pg_catalog.clock_timestamp())::float8 END AS seconds \
             FROM {schema}.{function}({types}::text[]) AS d (moment)"
        )
    }

    /// The same, told to the other workers. Parameters: the schema, the pause where something is due now, the types, and their key.
    fn due_telling(self, schema: &str) -> String {
        format!(
            "SELECT n.seconds, CASE WHEN n.seconds <= 0 AND $2::float8 IS NULL THEN NULL ELSE \
             pg_catalog.pg_notify('{QUIET}', CASE WHEN n.seconds IS NULL THEN '-' \
             ELSE greatest(n.seconds, $2)::text END || ' {} ' || $4::text || ' ' || $1::text) END FROM ({}) n",
            self.name(),
            self.due(schema, "$3")
        )
    }

    /// Prepares them all, in a schema whose name is in quotes.
    pub(super) async fn statements(self, client: &Client, schema: &str) -> Result<Statements, Error> {
        let typed = [Type::INT8, Type::TEXT, Type::INT4, Type::TEXT, Type::TEXT];
        let of_job = typed.get(..3).unwrap_or_default();
        Ok(Statements {
            fetch: client.prepare(&self.fetch(schema)).await?,
            // Not each of them uses each of its parameters.
            finish: client.prepare_typed(&self.finish(schema), &typed).await?,
            give_back: client.prepare_typed(&self.give_back(schema), of_job).await?,
            heartbeat: client.prepare(&self.heartbeat(schema)).await?,
            next_due: client.prepare(&self.due(schema, "$1")).await?,
            next_due_telling: client.prepare(&self.due_telling(schema)).await?,
        })
    }
}

/// What a session asks of one source.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) fetch: Statement,
    pub(super) finish: Statement,
    pub(super) give_back: Statement,
    pub(super) heartbeat: Statement,
    pub(super) next_due: Statement,
    pub(super) next_due_telling: Statement,
}
