//! What may be done to a row of another system: one statement, which names all that was seen of the row.

use strum::{IntoStaticStr, VariantArray};

use super::{Need, Proof, Template};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ActionKind {
    /// `[actions.recover]`: a job that has lost its worker is given back to its system.
    Recover,
    /// `[actions.unlock]`: a lease is ended.
    Unlock,
}

impl ActionKind {
    /// Both.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word in the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// What its statement may name of the row.
    #[must_use]
    pub const fn values(self) -> &'static [Value] {
        match self {
            Self::Recover => &[Value::Id, Value::Worker, Value::Attempt, Value::StartedAt],
            Self::Unlock => &[Value::Id, Value::Owner, Value::AcquiredAt, Value::ExpiresAt],
        }
    }

    /// What tells one run or holder from the next: one of these has to stand in the statement.
    #[must_use]
    pub const fn telling(self) -> &'static [Value] {
        match self {
            Self::Recover => &[Value::StartedAt, Value::Attempt],
            Self::Unlock => &[Value::AcquiredAt, Value::ExpiresAt],
        }
    }
}

/// What was seen of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Value {
    /// Its id.
    Id,
    /// Its worker.
    Worker,
    /// Its attempt.
    Attempt,
    /// When it was started.
    StartedAt,
    /// Who has it.
    Owner,
    /// Since when.
    AcquiredAt,
    /// Until when.
    ExpiresAt,
}

impl Value {
    /// What stands for it in a statement, in braces.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A statement that acts.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// What it does.
    pub kind: ActionKind,
    /// What has to be there.
    pub needs: Vec<Need>,
    /// Only of jobs that are lost by one of these; of leases nothing is proved.
    pub proofs: Vec<Proof>,
    /// The advisory lock of the job has to be free, and is held until the end of the transaction.
    pub holds_key: bool,
    /// The keys of the tables that it writes.
    pub writes: Vec<Text>,
    /// The statement.
    pub sql: Template,
    /// What its system does with the job or lease then.
    pub then: Text,
    /// What a worker does that was only silent, and finishes late.
    pub late: Option<Text>,
}

/// The values of a row, as they were seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    /// [`Value::Id`].
    pub id: Text,
    /// [`Value::Worker`] or [`Value::Owner`].
    pub who: Option<Text>,
    /// [`Value::Attempt`].
    pub attempt: Option<i64>,
    /// [`Value::StartedAt`] or [`Value::AcquiredAt`].
    pub since: Option<Timestamp>,
    /// [`Value::ExpiresAt`].
    pub until: Option<Timestamp>,
    /// The advisory lock of the job.
    pub key: Option<LockKey>,
}

impl Values {
    /// Whether the row said this.
    #[must_use]
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
