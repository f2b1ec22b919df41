//! What the operator requests on a screen, as passed from the dialog to the executor.
//!
//! Everything in here is what was *seen*. The statement that acts compares it with the current state on the server. The
//! record stores rows of tables under these names.

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use strum::IntoStaticStr;

use super::{Planned, RecoveryPlan, Request, SessionTarget, Verb};
use crate::model::adapter::{ActionKind, Adapter, Values};
use crate::model::finding::Subject;
use crate::model::redis_lease::{self, RedisLease};
use crate::model::view::TargetId;
use crate::model::{Text, Timestamp};
use crate::text::one_line;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeaseTarget {
    pub table: u32,
    pub source: Text,
    /// Whether the table is in locktop's own schema, whose functions change it.
    #[serde(skip)]
    pub is_own: bool,
    /// `id` of the row, cast to text.
    pub id: Text,
    /// The owner as seen; the server acts only on this owner.
    pub owner: Text,
    pub renewed_at: Timestamp,
    /// Lifetime from `renewed_at`, in seconds.
    pub term: f64,
    /// `None` if the table has no tokens.
    pub token: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskTarget {
    pub table: u32,
    pub source: Text,
    #[serde(skip)]
    pub is_own: bool,
    pub id: i64,
    pub name: Option<Text>,
    /// `None` if it was not known.
    pub enabled: Option<bool>,
    pub next_run_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemTarget {
    pub table: u32,
    pub source: Text,
    #[serde(skip)]
    pub is_own: bool,
    pub id: i64,
    pub status: Option<Text>,
    /// The attempt as seen; `None` without the column.
    pub attempt: Option<i64>,
    /// The worker as seen; `None` if the item had none.
    pub worker: Option<Text>,
    #[serde(skip)]
    pub key: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedTarget {
    pub table: u32,
    pub source: Text,
    pub id: i64,
    pub task_id: i64,
    /// `task_name` of its schedule; `None` if it has no schedule.
    #[serde(skip)]
    pub name: Option<Text>,
    pub worker: Text,
    pub started_at: Timestamp,
    /// The advisory lock key that its worker locks.
    #[serde(rename = "lock_key")]
    pub key: i64,
    #[serde(skip_serializing_if = "PublishedHolder::is_none")]
    pub holder: PublishedHolder,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedHolder {
    /// No holder: the key must be free.
    None,
    /// The session of the execution itself, which is terminated first.
    Worker(SessionTarget),
    /// The session of another execution, which is not touched: the key must be free, or held by that session for the other
    /// execution.
    Other { pid: i32, backend_start: Timestamp, execution: i64, worker: Text },
}

impl PublishedHolder {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// A job or lease of another system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdapterTarget {
    #[serde(serialize_with = "name_of")]
    pub adapter: Arc<Adapter>,
    pub source: Text,
    pub oid: u32,
    /// Prefix or suffix of its table names.
    #[serde(skip)]
    pub prefix: Text,
    /// The tables that the statement writes, as `schema.table`.
    #[serde(skip)]
    pub tables: Vec<Text>,
    #[serde(skip)]
    pub kind: ActionKind,
    /// Index of the alternative of its adapter, from 1.
    #[serde(skip)]
    pub number: usize,
    /// What the other system does with the job or lease afterwards.
    #[serde(skip)]
    pub then: Text,
    #[serde(flatten)]
    pub values: Values,
}

fn name_of<S: Serializer>(adapter: &Adapter, serializer: S) -> Result<S::Ok, S::Error> {
    adapter.name.serialize(serializer)
}

impl AdapterTarget {
    pub fn grants(&self) -> String {
        format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {}, and USAGE on the sequences of tables to which rows are added",
            self.tables.join(", ")
        )
    }
}

/// An execution of locktop's own tables, by the plan that the server made.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionTarget {
    pub id: i64,
    pub plan: Arc<RecoveryPlan>,
}

impl ExecutionTarget {
    /// `None` if the plan does not have it.
    pub fn row(&self) -> Option<&Planned> {
        self.plan.row(self.id)
    }

    fn is_same(&self, other: &Self) -> bool {
        let (Some(one), Some(two)) = (self.row(), other.row()) else { return false };
        // What the server compares, too.
        let identity = |row: &Planned| {
            let seen = &row.seen;
            (seen.worker_id.clone(), seen.started_at, seen.backend_pid, seen.backend_start)
        };
        let also = |row: &Planned| row.also_ended.iter().map(|also| also.execution_id).collect::<Vec<_>>();
        self.id == other.id
            && one.step == two.step
            && identity(one) == identity(two)
            && also(one) == also(two)
    }
}

impl Serialize for ExecutionTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serializer.serialize_struct("Execution", 9)?;
        line.serialize_field("id", &self.id)?;
        line.serialize_field("schema", &self.plan.schema)?;
        if let Some(Planned { seen, .. }) = self.row() {
            line.serialize_field("task_id", &seen.task_id)?;
            line.serialize_field("task_name", &seen.task_name)?;
            line.serialize_field("worker", &seen.worker_id)?;
            line.serialize_field("started_at", &seen.started_at)?;
            line.serialize_field("backend_pid", &seen.backend_pid)?;
            line.serialize_field("backend_start", &seen.backend_start)?;
            line.serialize_field("lock_id", &seen.lock_id)?;
        }
        line.end()
    }
}

/// The record stores it with its `kind`. Parts that need not match are omitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TargetKind {
    Session(SessionTarget),
    Lease(LeaseTarget),
    RedisLease(#[serde(serialize_with = "redis_lease::recorded")] Arc<RedisLease>),
    Task(TaskTarget),
    Item(ItemTarget),
    Published(PublishedTarget),
    Adapter(AdapterTarget),
    Execution(ExecutionTarget),
}

impl TargetKind {
    /// Whether both have the same identity: a lease with a token stays the same when it is renewed.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Lease(one), Self::Lease(other)) if one.token.is_some() => {
                let renewed = LeaseTarget { renewed_at: other.renewed_at, term: other.term, ..one.clone() };
                renewed == *other
            }
            (Self::Execution(one), Self::Execution(other)) => one.is_same(other),
            _ => self == other,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub what: TargetKind,
    /// Display name in one sanitized line: `4312 app@web-3`.
    pub name: String,
    pub subject: Subject,
}

impl Target {
    pub fn result(&self, outcome: Outcome, detail: &str) -> TargetResult {
        let detail = one_line(detail).into_owned();
        TargetResult { name: self.name.clone(), subject: self.subject, outcome, detail }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ActionCommand {
    /// The server whose rows were on the screen; an executor for another server does nothing.
    pub server: TargetId,
    /// Increases with each command; its report has the same number.
    pub number: u64,
    pub verb: Verb,
    /// Targets in the order in which the executor handles them, one at a time.
    pub targets: Vec<Target>,
    /// How long to wait until the requested change has happened, in seconds.
    pub wait: f64,
}

/// What the executor is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    Act(Arc<ActionCommand>),
    PlanRecovery {
        server: TargetId,
        /// A number chosen by the caller, which the reply repeats.
        number: u64,
        schema: String,
        request: Arc<Request>,
    },
}

impl Order {
    pub fn server(&self) -> TargetId {
        match self {
            Self::Act(command) => command.server,
            Self::PlanRecovery { server, .. } => *server,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    Done,
    /// Done, and the recovered item is not tried again: that was its last attempt.
    GivenUp,
    /// The server accepted the request, but the change did not happen within the time limit.
    StillThere,
    /// The target has changed or no longer exists; nothing was done.
    Changed,
    /// The server refused, or the action is impossible; nothing was done.
    Refused,
    /// The role lacks a privilege; nothing was done.
    Forbidden,
    /// The connection was lost or no answer arrived; it is not known what was done.
    #[strum(serialize = "outcome_unknown")]
    Uncertain,
    /// Not tried: the result of an earlier target is unknown, or no server could be reached.
    NotTried,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TargetResult {
    pub name: String,
    pub subject: Subject,
    pub outcome: Outcome,
    /// What was done or observed, or why not, with the missing grant, in one sanitized line.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub number: u64,
    pub verb: Verb,
    pub results: Vec<TargetResult>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExecutorReply {
    /// The number of a command, and how many of its targets have a known result. Some of these replies may be skipped.
    Progress(u64, usize),
    Reported(Arc<Report>),
    /// The plan, or in one line why there is none.
    RecoveryPlanned(u64, Result<Arc<RecoveryPlan>, String>),
}
