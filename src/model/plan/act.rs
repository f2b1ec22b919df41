//! What the operator asks for on a screen, as it goes from the dialog to whoever carries it out.
//!
//! Everything in here is what was *seen*. The server compares it with what is, in the statement that acts. The record has the rows of tables
//! by these names.

use std::sync::Arc;

use serde::Serialize;
use strum::IntoStaticStr;

use super::{RecoveryPlan, SessionTarget, Verb};
use crate::model::adapter::{ActionKind, Adapter, Values};
use crate::model::finding::Subject;
use crate::model::redis_lease::RedisLease;
use crate::model::view::TargetId;
use crate::model::{Text, Timestamp};

/// A row of a table of leases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeaseTarget {
    /// `pg_class.oid` of its table, by which the server finds it again.
    pub table: u32,
    /// The table as `schema.table`, for people and the record.
    pub source: Text,
    /// Whether the table is of locktop's own schema, whose functions change it.
    #[serde(skip)]
    pub is_own: bool,
    /// Its `id`, cast to text.
    pub id: Text,
    /// Who has it by its row, as it was seen; the server acts on nobody else.
    pub owner: Text,
    /// When it was taken or renewed.
    pub renewed_at: Timestamp,
    /// How long it lives from then on, in seconds.
    pub term: f64,
    /// Its token; none where the table has none.
    pub token: Option<i64>,
}

/// A row of a table of tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskTarget {
    /// `pg_class.oid` of its table, by which the server finds it again.
    pub table: u32,
    /// The table as `schema.table`, for people and the record.
    pub source: Text,
    /// Whether the table is of locktop's own schema, whose functions change it.
    #[serde(skip)]
    pub is_own: bool,
    /// `id` of the row in `scheduled_tasks`.
    pub id: i64,
    /// `task_name`, for people and the record.
    pub name: Option<Text>,
    /// Whether it was enabled as it was seen; none where that was not known.
    pub enabled: Option<bool>,
    /// When it was due as it was seen (`next_run_at`).
    pub next_run_at: Option<Timestamp>,
}

/// A row of a table of the work queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemTarget {
    /// `pg_class.oid` of its table, by which the server finds it again.
    pub table: u32,
    /// The table as `schema.table`, for people and the record.
    pub source: Text,
    /// Whether the table is of locktop's own schema, whose functions change it.
    #[serde(skip)]
    pub is_own: bool,
    /// `id` of the row in `task_queue`.
    pub id: i64,
    /// Its status as it was seen.
    pub status: Option<Text>,
    /// Which attempt it was as it was seen; none without the column.
    pub attempt: Option<i64>,
    /// Who had it by its row, as it was seen; none where nobody had.
    pub worker: Option<Text>,
    /// In a published table, what its worker locks.
    #[serde(skip)]
    pub key: Option<i64>,
}

/// A row of a published log of executions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedTarget {
    /// `pg_class.oid` of the log, by which the server finds it again.
    pub table: u32,
    /// The log as `schema.table`, for people and the record.
    pub source: Text,
    /// `id` of the row in `task_execution_log`.
    pub id: i64,
    /// `task_id` of that row.
    pub task_id: i64,
    /// `task_name` of its schedule; none where there is no schedule.
    #[serde(skip)]
    pub name: Option<Text>,
    /// Who runs it by the log.
    pub worker: Text,
    /// When it was started by the log.
    pub started_at: Timestamp,
    /// The number that its worker locks.
    #[serde(rename = "lock_key")]
    pub key: i64,
    /// The holder of that key, as far as one is known.
    #[serde(skip_serializing_if = "PublishedHolder::is_none")]
    pub holder: PublishedHolder,
}

/// The session that holds the key of an execution in a published log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedHolder {
    /// None: the key has to be free.
    None,
    /// The session of the execution itself, which is terminated first.
    Worker(SessionTarget),
    /// The session of another execution, which is left alone: the key has to be free, or held by it for that execution.
    Other {
        /// Process id of that session.
        pid: i32,
        /// When it began.
        backend_start: Timestamp,
        /// `id` of the other row in `task_execution_log`.
        execution: i64,
        /// The worker of that row.
        worker: Text,
    },
}

impl PublishedHolder {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// A job or lease of another system, as it was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterTarget {
    /// The definition of the system, which has the statement.
    pub adapter: Arc<Adapter>,
    /// What its installation is called on the screens.
    pub source: Text,
    /// The OID of the first table of the installation.
    pub oid: u32,
    /// What stands before or behind the names of its tables.
    pub prefix: Text,
    /// The tables that are written, as `schema.table`.
    pub tables: Vec<Text>,
    /// Whether a job is recovered or a lease unlocked.
    pub kind: ActionKind,
    /// By which of the alternatives of its adapter, from 1.
    pub number: usize,
    /// What its system does with the job or lease then.
    pub then: Text,
    /// What the statement names of the row, as it was seen.
    pub values: Values,
}

impl AdapterTarget {
    /// What a role needs for it, beside what it needs to read.
    pub fn grants(&self) -> String {
        format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {}, and USAGE on the sequences of tables to which rows are added",
            self.tables.join(", ")
        )
    }
}

/// The kind of a target, with what the server compares before it acts.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetKind {
    /// A session, which is sent a signal.
    Session(SessionTarget),
    /// A lease in a table, which is ended.
    Lease(LeaseTarget),
    /// A lease in Redis, which is ended on all servers of its set.
    RedisLease(Arc<RedisLease>),
    /// A task, whose schedule is changed.
    Task(TaskTarget),
    /// An item of the work queue.
    Item(ItemTarget),
    /// An execution in a published log.
    Published(PublishedTarget),
    /// A job or a lease of another system.
    Adapter(AdapterTarget),
    /// An execution: its row in the plan of the order.
    Execution {
        /// Id of its row in `task_execution_log`.
        id: i64,
    },
}

impl TargetKind {
    /// Whether both are the same thing, as far as its identity goes: a lease with a token stays the same when it is renewed.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Lease(one), Self::Lease(other)) if one.token.is_some() => {
                let renewed = LeaseTarget { renewed_at: other.renewed_at, term: other.term, ..one.clone() };
                renewed == *other
            }
            _ => self == other,
        }
    }
}

/// What one action of a command is done to.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// What it is, with what the server compares before it acts.
    pub what: TargetKind,
    /// What it is called, in one harmless line: `4312 app@web-3`.
    pub name: String,
    /// The row it is about, for whoever wants to go there.
    pub subject: Subject,
}

/// What somebody has confirmed, as it goes to the executor.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionCommand {
    /// The server that it is for, which is the one whose rows were on the screen: an executor of another one does nothing.
    pub server: TargetId,
    /// Counts up from command to command: the report has the same.
    pub number: u64,
    /// What is to be done to each target.
    pub verb: Verb,
    /// To whom, in this order, each alone.
    pub targets: Vec<Target>,
    /// The plan behind a recovery; none for everything else.
    pub recovery: Option<Arc<RecoveryPlan>>,
    /// How long to wait for what was asked for to happen, in seconds.
    pub wait: f64,
}

/// What came of an action on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The server confirmed that it was done.
    Done,
    /// The server confirmed it, and what was recovered is not tried again: that was its last attempt.
    GivenUp,
    /// The server took the order, and it has not happened within the time given.
    StillThere,
    /// The target is not what was seen any more, or gone: nothing was done.
    Changed,
    /// The server refused, or it cannot be done: nothing was done.
    Refused,
    /// The role may not: nothing was done.
    Forbidden,
    /// The connection was lost, or no answer came: what was done is not known.
    #[strum(serialize = "outcome_unknown")]
    Uncertain,
    /// It was not tried: what came of one before it is not known, or nobody could be asked.
    NotTried,
}

impl Outcome {
    /// Its word in the record and in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What came of one target, and what was observed.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetResult {
    /// [`Target::name`] of the target.
    pub name: String,
    /// [`Target::subject`] of the target, for whoever wants to go there.
    pub subject: Subject,
    /// What came of it, in a word.
    pub outcome: Outcome,
    /// In one harmless line: what was done or observed, or why not, with the grant that is missing.
    pub detail: String,
}

/// What came of a command, target by target.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// [`ActionCommand::number`] of the command.
    pub number: u64,
    /// What was to be done to each target.
    pub verb: Verb,
    /// A result for each target, in their order.
    pub results: Vec<TargetResult>,
    /// What went wrong beside it, such as a record that could not be written.
    pub notes: Vec<String>,
}
