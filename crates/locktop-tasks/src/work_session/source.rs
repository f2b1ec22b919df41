use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
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

    /// Time of the next work of these types (the parameter of this number), in seconds from now by the server's clock. NULL
    /// for an infinite time, which is no number of seconds.
    fn due(self, schema: &str, types: &str) -> String {
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
    fn due_notifying(self, schema: &str) -> String {
        format!(
            "SELECT n.seconds, CASE WHEN n.seconds <= 0 AND $2::float8 IS NULL THEN NULL ELSE \
             pg_catalog.pg_notify('{QUIET}', CASE WHEN n.seconds IS NULL THEN '-' \
             ELSE greatest(n.seconds, $2)::text END || ' {} ' || $4::text || ' ' || $1::text) END FROM ({}) n",
            self.name(),
            self.due(schema, "$3")
        )
    }

    /// Prepares the statements of this source. `schema` is already quoted.
    async fn statements(self, client: &Client, schema: &str) -> Result<SourceStatements, Error> {
        let (name, payload) = (bytes("f.task_name"), bytes("f.payload::text"));
        let [fetch, finish, give_back, heartbeat] = match self {
            Self::Tasks => [
                format!(
                    "SELECT f.execution_id, f.task_id::int8, {name}, {}, {payload}, f.attempt, f.max_attempts, f.timeout_seconds, f.lock_id \
                     FROM {schema}.fetch_tasks($1, $2, $3) f",
                    bytes("f.task_type")
                ),
                format!("SELECT {schema}.try_release_task_lock($1::int4, $2, $4, $5)"),
                format!("SELECT {schema}.give_back_task($1::int4, $2)"),
                format!("SELECT h.id, NULL::int4 FROM {schema}.heartbeat_tasks($1) h (id)"),
            ],
            Self::Queue => [
                // The name of an item determines its work.
                format!(
                    "SELECT f.task_id, f.task_id, {name}, {name}, {payload}, f.attempt, f.max_attempts, f.timeout_seconds, \
                     {schema}.queue_lock_key(f.task_id) FROM {schema}.claim_queue_items($1, $2, $3) f"
                ),
                format!("SELECT {schema}.finish_queue_item($1, $2, $3, $4, $5)"),
                format!("SELECT {schema}.give_back_queue_item($1, $2, $3)"),
                format!("SELECT h.task_id, h.attempt FROM {schema}.heartbeat_queue_items($1) h"),
            ],
        };
        let typed = [Type::INT8, Type::TEXT, Type::INT4, Type::TEXT, Type::TEXT];
        let of_job = typed.get(..3).unwrap_or_default();
        Ok(SourceStatements {
            fetch: client.prepare(&fetch).await?,
            // Not every statement uses all of its parameters.
            finish: client.prepare_typed(&finish, &typed).await?,
            give_back: client.prepare_typed(&give_back, of_job).await?,
            heartbeat: client.prepare(&heartbeat).await?,
            next_due: client.prepare(&self.due(schema, "$1")).await?,
            next_due_notifying: client.prepare(&self.due_notifying(schema)).await?,
        })
    }
}

#[derive(Debug)]
pub(super) struct SourceStatements {
    /// Parameters: the worker, the maximum number, and the types. Columns as [`super::Job::read`] expects them.
    pub(super) fetch: Statement,
    /// Parameters: the task or item, the worker, the attempt, the status and the error.
    pub(super) finish: Statement,
    /// Parameters: the task or item, the worker and the attempt.
    pub(super) give_back: Statement,
    /// Parameter: the worker. Returns the IDs of its jobs, with the attempt if the ID alone is not enough.
    pub(super) heartbeat: Statement,
    pub(super) next_due: Statement,
    pub(super) next_due_notifying: Statement,
}

#[derive(Debug)]
pub(super) struct Statements {
    tasks: SourceStatements,
    queue: SourceStatements,
    /// For the queue only: fetching a task includes it.
    pub(super) requeue: Statement,
    pub(super) observe: Statement,
    pub(super) announce: Statement,
    pub(super) purge: Statement,
    /// When each source has work, in the order of [`Source::ALL`].
    pub(super) glance: Statement,
    pub(super) notify: Statement,
    /// For tasks only: an item's advisory lock blocks no other session.
    pub(super) release_idle: Statement,
}

impl Statements {
    /// `schema` is already quoted.
    pub(super) async fn prepare(client: &Client, schema: &str) -> Result<Self, Error> {
        let requeue = format!(
            "SELECT r.task_id, r.outcome, {} FROM {schema}.requeue_lost_items($1, $2) r",
            bytes("coalesce(r.detail, '')")
        );
        let purge =
            format!("SELECT p.log, p.keep::pg_catalog.text, p.removed, p.may FROM {schema}.purge_step() p");
        let announce = format!("SELECT {schema}.announce_worker($1, $2, $3, $4)::pg_catalog.text");
        let [tasks_due, items_due] = Source::ALL.map(|source| source.due(schema, "$1"));
        Ok(Self {
            tasks: Source::Tasks.statements(client, schema).await?,
            queue: Source::Queue.statements(client, schema).await?,
            requeue: client.prepare(&requeue).await?,
            observe: client.prepare(&format!("SELECT {schema}.observe_lock_waits()")).await?,
            announce: client.prepare(&announce).await?,
            purge: client.prepare(&purge).await?,
            glance: client.prepare(&format!("SELECT ({tasks_due}), ({items_due})")).await?,
            notify: client.prepare("SELECT pg_catalog.pg_notify($1, $2)").await?,
            release_idle: client.prepare(&format!("SELECT {schema}.release_idle_task_keys($1)")).await?,
        })
    }

    pub(super) fn of(&self, source: Source) -> &SourceStatements {
        match source {
            Source::Tasks => &self.tasks,
            Source::Queue => &self.queue,
        }
    }
}

/// A text column as bytes. Its value may be invalid in a database without an encoding: the server would refuse the
/// whole result, so that neither this task nor others could run.
fn bytes(column: &str) -> String {
    format!(
        "pg_catalog.convert_to({column}, CASE WHEN pg_catalog.getdatabaseencoding() = 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END)"
    )
}

/// A notification that concerns a worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum News {
    /// There may be work to take, or the time of the next work has changed.
    Due(Source),
    /// Another worker found nothing left to take, with the time until the next poll; `None` if nothing is planned.
    Quiet(Source, Option<Duration>),
    /// The same notification from this session, at its place among those of other sessions.
    Notified(Source),
}

impl News {
    /// Reads a notification. `None` unless it concerns this schema and, if it is about types, exactly these types. `own`
    /// marks a notification from this session.
    pub(super) fn read(channel: &str, payload: &str, schema: &str, types: &Types, own: bool) -> Option<Self> {
        if let Some(due) = Self::of_channel(channel) {
            return (payload == schema).then_some(due);
        }
        if channel != QUIET {
            return None;
        }
        let (seconds, rest) = payload.split_once(' ')?;
        let (source, rest) = rest.split_once(' ')?;
        let (key, of) = rest.split_once(' ')?;
        let source = Source::ALL.into_iter().find(|known| known.name() == source)?;
        (key == types.key() && of == schema).then_some(())?;
        // Any role may notify: a value that is not a duration is ignored.
        let told = match seconds {
            "-" => None,
            seconds => Some(Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?),
        };
        Some(if own { Self::Notified(source) } else { Self::Quiet(source, told) })
    }

    /// The most that a notification on this channel can mean.
    pub(super) fn of_channel(channel: &str) -> Option<Self> {
        Source::ALL.into_iter().find(|source| source.channel() == channel).map(Self::Due)
    }

    /// The source that it is about.
    #[must_use]
    pub fn source(self) -> Source {
        match self {
            Self::Due(source) | Self::Quiet(source, _) | Self::Notified(source) => source,
        }
    }
}

/// The key of all types, in notifications between workers.
const ALL: &str = "*";

/// The types of work that a session takes: a list, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Types {
    names: Option<Arc<[String]>>,
    key: Arc<str>,
}

impl Types {
    /// All types, including future ones.
    #[must_use]
    pub fn all() -> Self {
        Self { names: None, key: ALL.into() }
    }

    /// Only these, in any order; an empty list takes nothing.
    #[must_use]
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
        names.sort();
        names.dedup();
        let mut hash = Sha256::new();
        for name in &names {
            // With its length, so that no two lists give the same text.
            hash.update(name.len().to_le_bytes());
            hash.update(name.as_bytes());
        }
        let mut key = String::new();
        for byte in hash.finalize().iter().take(8) {
            let _ = write!(key, "{byte:02x}");
        }
        Self { names: Some(names.into()), key: key.into() }
    }

    /// The names, sorted; `None` for all types.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The same for all workers that take the same types; a poll for other types says nothing about these.
    pub(super) fn key(&self) -> &str {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_of_types_have_the_same_key() {
        let two = Types::only(["b", "a", "b"]);
        assert_eq!(two.names(), Some(&["a".to_owned(), "b".to_owned()][..]));
        assert_eq!(two.key(), Types::only(["a", "b"]).key());
        assert_eq!((Types::all().key(), Types::all().names()), ("*", None));
        let (one, none) = (Types::only(["ab"]), Types::only(Vec::<String>::new()));
        let keys = [two.key(), one.key(), none.key(), "*"];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key) && !key.contains(' '), "{keys:?}");
        }
    }
}
