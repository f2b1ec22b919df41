use strum::IntoStaticStr;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Statement};

/// Channel on which workers report that nothing is left to take. Payload: seconds until that changes, or `-`; the
/// source; the key of the types; the schema.
pub(super) const QUIET: &str = "locktop_quiet";

/// Where a worker takes work from: scheduled tasks or the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Source {
    /// Due executions of tasks, from `scheduled_tasks`.
    Tasks,
    /// Pending and due items, from `task_queue`.
    Queue,
}

impl Source {
    /// Both sources, tasks first.
    pub const ALL: [Self; 2] = [Self::Tasks, Self::Queue];

    /// Its name in the option `--only` and in notifications.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Its rows in the plural, for messages.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Queue => "items",
        }
    }

    /// Channel on which the schema reports that there is work to take, or when there will be. Payload: the schema.
    pub(super) fn channel(self) -> &'static str {
        match self {
            Self::Tasks => "locktop_tasks",
            Self::Queue => "locktop_queue",
        }
    }

    /// Parameters: the worker, the maximum number, and the types. Columns as [`super::Job::read`] expects them.
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

    /// Parameter: the worker. Returns the IDs of its jobs, with the attempt if the ID alone is not enough.
    fn heartbeat(self, schema: &str) -> String {
        match self {
            Self::Tasks => format!("SELECT h.id, NULL::int4 FROM {schema}.heartbeat_tasks($1) h (id)"),
            Self::Queue => {
                format!("SELECT h.task_id, h.attempt FROM {schema}.heartbeat_queue_items($1) h")
            }
        }
    }

    /// Time of the next work of these types (the parameter of this number), in seconds from now by the server's clock. NULL
    /// for an infinite time, which is no number of seconds.
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

    /// The same, with a notification to the other workers. Parameters: the schema, the pause if something is due now, the
    /// types, and their key.
    fn due_telling(self, schema: &str) -> String {
        format!(
            "SELECT n.seconds, CASE WHEN n.seconds <= 0 AND $2::float8 IS NULL THEN NULL ELSE \
             pg_catalog.pg_notify('{QUIET}', CASE WHEN n.seconds IS NULL THEN '-' \
             ELSE greatest(n.seconds, $2)::text END || ' {} ' || $4::text || ' ' || $1::text) END FROM ({}) n",
            self.name(),
            self.due(schema, "$3")
        )
    }

    /// Prepares all statements. `schema` is already quoted.
    pub(super) async fn statements(self, client: &Client, schema: &str) -> Result<Statements, Error> {
        let typed = [Type::INT8, Type::TEXT, Type::INT4, Type::TEXT, Type::TEXT];
        let of_job = typed.get(..3).unwrap_or_default();
        Ok(Statements {
            fetch: client.prepare(&self.fetch(schema)).await?,
            // Not every statement uses all of its parameters.
            finish: client.prepare_typed(&self.finish(schema), &typed).await?,
            give_back: client.prepare_typed(&self.give_back(schema), of_job).await?,
            heartbeat: client.prepare(&self.heartbeat(schema)).await?,
            next_due: client.prepare(&self.due(schema, "$1")).await?,
            next_due_telling: client.prepare(&self.due_telling(schema)).await?,
        })
    }
}

#[derive(Debug)]
pub(super) struct Statements {
    pub(super) fetch: Statement,
    pub(super) finish: Statement,
    pub(super) give_back: Statement,
    pub(super) heartbeat: Statement,
    pub(super) next_due: Statement,
    pub(super) next_due_telling: Statement,
}

/// A text column as bytes. Its value may be invalid in a database without an encoding: the server would refuse the
/// whole result, so that neither this task nor others could run.
pub(super) fn bytes(column: &str) -> String {
    format!(
        "pg_catalog.convert_to({column}, CASE WHEN pg_catalog.getdatabaseencoding() = 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END)"
    )
}
