//! What may be done to a row of another system: one statement, which names all that was seen of the row.

use strum::{IntoStaticStr, VariantArray};

use super::{Need, Proof, Template};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};

/// What an action of an adapter does: `R` or `U` on a row, where the config has `allow_actions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ActionKind {
    /// `[actions.recover]`: a job that has lost its worker is given back to its system.
    Recover,
    /// `[actions.unlock]`: a lease is ended before its time.
    Unlock,
}

impl ActionKind {
    /// Both kinds, as `[actions]` of a file may have them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word in the file, behind `actions.`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What its statement may name of the row.
    pub const fn values(self) -> &'static [Value] {
        match self {
            Self::Recover => &[Value::Id, Value::Worker, Value::Attempt, Value::StartedAt],
            Self::Unlock => &[Value::Id, Value::Owner, Value::AcquiredAt, Value::ExpiresAt],
        }
    }

    /// What tells one run or holder from the next: one of these has to stand in the statement.
    pub const fn telling(self) -> &'static [Value] {
        match self {
            Self::Recover => &[Value::StartedAt, Value::Attempt],
            Self::Unlock => &[Value::AcquiredAt, Value::ExpiresAt],
        }
    }
}

/// What was seen of the row, which the statement names in braces and the server compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Value {
    /// `{id}`: its id, as text.
    Id,
    /// `{worker}`: the worker that has the job, as text.
    Worker,
    /// `{attempt}`: the number of the attempt that runs.
    Attempt,
    /// `{started_at}`: when the run began.
    StartedAt,
    /// `{owner}`: who has the lease, as text.
    Owner,
    /// `{acquired_at}`: when its owner got the lease.
    AcquiredAt,
    /// `{expires_at}`: when the lease ends.
    ExpiresAt,
}

impl Value {
    /// What stands for it in a statement, in braces.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An action of a file: one statement that changes a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Whether it is for jobs or for leases.
    pub kind: ActionKind,
    /// Columns and labels that have to be there, else the next of its kind is tried.
    pub needs: Vec<Need>,
    /// Only of jobs that are lost by one of these; of leases nothing is proved.
    pub proofs: Vec<Proof>,
    /// The advisory lock of the job has to be free, and is held until the end of the transaction.
    pub holds_key: bool,
    /// The keys of the tables that it writes.
    pub writes: Vec<Text>,
    /// The statement, with `{…}` for tables and for what was seen of the row.
    pub sql: Template,
    /// What its system does with the job or lease then.
    pub then: Text,
    /// What a worker does that was only silent, and finishes late.
    pub late: Option<Text>,
}

/// The values of a row, as they were seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    /// The job's or lease's id, for [`Value::Id`].
    pub id: Text,
    /// The worker of a job, the owner of a lease; none where the row names nobody.
    pub who: Option<Text>,
    /// The attempt of a job; none where its system counts none, and of a lease.
    pub attempt: Option<i64>,
    /// When a job was started, or a lease acquired; none where the row does not say it.
    pub since: Option<Timestamp>,
    /// When a lease ends; none where the row does not say it, and of a job.
    pub until: Option<Timestamp>,
    /// The advisory lock of the job.
    pub key: Option<LockKey>,
}

impl Values {
    /// Whether the row has a value for that: a statement that names it cannot be sent else.
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
