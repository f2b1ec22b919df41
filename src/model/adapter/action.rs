//! Actions on a row of another system: one statement, which names everything that was read of the row.

use super::{Need, Proof, Template};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};
use serde::Serialize;

words! {
    /// An action of an adapter: `R` or `U` on a row, if the config has `allow_actions`.
    pub enum ActionKind {
        /// `[actions.recover]`: returns a job that has lost its worker to its system.
        Recover,
        /// `[actions.unlock]`: ends a lease before its expiry.
        Unlock,
    }
}

impl ActionKind {
    pub const fn values(self) -> &'static [Value] {
        match self {
            Self::Recover => &[Value::Id, Value::Worker, Value::Attempt, Value::StartedAt],
            Self::Unlock => &[Value::Id, Value::Owner, Value::AcquiredAt, Value::ExpiresAt],
        }
    }

    /// Values that distinguish one run or holder from the next: the statement must name one of them.
    pub const fn telling(self) -> &'static [Value] {
        match self {
            Self::Recover => &[Value::StartedAt, Value::Attempt],
            Self::Unlock => &[Value::AcquiredAt, Value::ExpiresAt],
        }
    }
}

words! {
    /// A value that was read of the row, which the statement names in braces and the server compares.
    pub enum Value {
        Id,
        Worker,
        Attempt,
        StartedAt,
        Owner,
        AcquiredAt,
        ExpiresAt,
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub kind: ActionKind,
    /// Required columns and labels. If one is missing, the next action of this kind is tried.
    pub needs: Vec<Need>,
    /// For jobs: one of these must prove that the job is lost. For leases nothing is proved.
    pub proofs: Vec<Proof>,
    /// The advisory lock of the job must be free, and is held until the end of the transaction.
    pub holds_key: bool,
    pub writes: Vec<Text>,
    pub sql: Template,
    /// What its system does with the job or lease afterwards.
    pub then: Text,
    /// The effect if the worker was only silent and finishes late.
    pub late: Option<Text>,
}

/// The record stores them under these names.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Values {
    pub id: Text,
    /// The worker of a job, or the owner of a lease. None if the row names none.
    #[serde(rename = "worker")]
    pub who: Option<Text>,
    /// None if its system does not count attempts, and for a lease.
    pub attempt: Option<i64>,
    /// When the job was started, or the lease acquired. None if the row does not have it.
    pub since: Option<Timestamp>,
    /// When a lease ends. None if the row does not have it, and for a job.
    pub until: Option<Timestamp>,
    #[serde(skip)]
    pub key: Option<LockKey>,
}

impl Values {
    /// Whether the row has this value: otherwise a statement that names it cannot be sent.
    pub fn has(&self, value: Value) -> bool {
        match value {
            Value::Id => true,
            Value::Worker | Value::Owner => self.who.is_some(),
            Value::Attempt => self.attempt.is_some(),
            Value::StartedAt | Value::AcquiredAt => self.since.is_some(),
            Value::ExpiresAt => self.until.is_some(),
        }
    }
}
