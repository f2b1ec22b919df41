//! What the operator requests on a screen, as passed from the dialog to the executor.
//!
//! Everything in here is what was *seen*. The statement that acts compares it with the current state on the server. The
//! record stores rows of tables under these names.

use std::sync::Arc;

use serde::Serialize;
use strum::IntoStaticStr;

use super::{RecoveryPlan, Request, SessionTarget, Verb};
use crate::model::adapter::{ActionKind, Adapter, Values};
use crate::model::finding::Subject;
use crate::model::redis_lease::RedisLease;
use crate::model::view::TargetId;
use crate::model::{Text, Timestamp};

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

#[derive(Debug, Clone, PartialEq)]
pub struct AdapterTarget {
    pub adapter: Arc<Adapter>,
    pub source: Text,
    pub oid: u32,
    /// Prefix or suffix of its table names.
    pub prefix: Text,
    /// The tables that the statement writes, as `schema.table`.
    pub tables: Vec<Text>,
    pub kind: ActionKind,
    /// Index of the alternative of its adapter, from 1.
    pub number: usize,
    /// What the other system does with the job or lease afterwards.
    pub then: Text,
    pub values: Values,
}

impl AdapterTarget {
    pub fn grants(&self) -> String {
        format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {}, and USAGE on the sequences of tables to which rows are added",
            self.tables.join(", ")
        )
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum TargetKind {
    Session(SessionTarget),
    Lease(LeaseTarget),
    RedisLease(Arc<RedisLease>),
    Task(TaskTarget),
    Item(ItemTarget),
    Published(PublishedTarget),
    Adapter(AdapterTarget),
    Execution { id: i64 },
}

impl TargetKind {
    /// Whether both have the same identity: a lease with a token stays the same when it is renewed.
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

#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub what: TargetKind,
    /// Display name in one sanitized line: `4312 app@web-3`.
    pub name: String,
    pub subject: Subject,
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
    /// The plan of a recovery; `None` for other verbs.
    pub recovery: Option<Arc<RecoveryPlan>>,
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
