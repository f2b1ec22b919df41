//! The rows of `task_queue`, as they were read.

use strum::{IntoStaticStr, VariantArray};

use crate::model::{Text, Timestamp};

/// What identifies an item: the table it is in, and its id there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId {
    /// OID of the table, which may be one of several.
    pub table: u32,
    /// `id` of its row there.
    pub id: i64,
}

/// How many items have one status.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StateCount {
    /// `pending`, `processing`, `completed`, `failed`, or whatever stands there.
    pub status: Option<Text>,
    /// How many rows were counted.
    pub count: u64,
    /// There are more, which nobody counted.
    pub is_more: bool,
    /// The oldest of those that were counted came in then, or was due then; which may be to come.
    pub oldest_at: Option<Timestamp>,
    /// How many were completed within the last minute, where that is known.
    pub last_minute: Option<u64>,
}

/// A row of `task_queue`: work that is done once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Item {
    /// The primary key of the row (`id`).
    pub id: i64,
    /// `task_name`: which kind of work it is.
    pub name: Option<Text>,
    /// `pending`, `processing`, `completed`, `failed`, or whatever stands there.
    pub status: Option<Text>,
    /// Who has it or had it last.
    pub worker: Option<Text>,
    /// When it was added (`created_at`).
    pub created_at: Option<Timestamp>,
    /// When its worker took it (`started_at`).
    pub started_at: Option<Timestamp>,
    /// When it was completed or set aside (`completed_at`).
    pub completed_at: Option<Timestamp>,
    /// How often it was taken so far.
    pub attempt: Option<i64>,
    /// How often it may be taken.
    pub max_attempts: Option<i64>,
    /// Process id of the session that took it.
    pub backend_pid: Option<i32>,
    /// `backend_start` of that session, which tells it from a later one.
    pub backend_start: Option<Timestamp>,
    /// The worker's last sign of life.
    pub heartbeat_at: Option<Timestamp>,
    /// What went wrong; cut at 500 characters.
    pub error: Option<Text>,
    /// How long an attempt may take, in seconds.
    pub timeout: Option<f64>,
    /// Nobody takes it before then; in the past for one that was never put off.
    pub due_at: Option<Timestamp>,
    /// The number that the config says is locked for it.
    pub key: Option<i64>,
    /// The transaction that locked or changed its row last (`xmax`), which may be over; 0 if none did.
    pub locker: Option<u32>,
}

impl Item {
    /// Whether the table says that somebody works on it.
    pub fn is_processing(&self) -> bool {
        self.status.as_deref() == Some("processing")
    }

    /// Whether the table says that it is done, or set aside.
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }
}

/// How an item is. The order is that of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ItemState {
    /// Being worked on, as the table has it, and the session that took it is gone for so long that its worker has stopped.
    Lost,
    /// Being worked on, as the table has it, and the number that its key should be is free; whether its worker ever took that number is
    /// a guess.
    #[strum(serialize = "lost?")]
    MaybeLost,
    /// Being worked on for longer than it may.
    Slow,
    /// The same, and somebody holds its key whom nothing ties to its worker.
    #[strum(serialize = "slow?")]
    MaybeSlow,
    /// Being worked on, as the table has it; whether it really is cannot be told.
    Unknown,
    /// Being worked on, as the table has it, and the session that took it no longer exists: its worker may not know that yet.
    Settling,
    /// Being worked on, as the table has it, and somebody holds its key whom nothing ties to its worker.
    #[strum(serialize = "running?")]
    MaybeRunning,
    /// Being worked on, by somebody who is there and for no longer than it may be.
    Running,
    /// A session holds its key in an open transaction: what that wrote to the row is not visible before it commits.
    #[strum(serialize = "running (uncommitted)")]
    Uncommitted,
    /// The same with a number that is its key only by a guess.
    #[strum(serialize = "running? (uncommitted)")]
    MaybeUncommitted,
    /// Set aside after its last attempt, or by hand: nobody takes it.
    Failed,
    /// Nobody has it, and the next free worker may take it.
    Pending,
    /// Nobody has it, and nobody takes it yet: it is tried again later, or was added for later.
    Resting,
}

impl ItemState {
    /// Every state, the most urgent first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Whether a session works on it in a transaction whose changes are not visible yet.
    pub const fn is_uncommitted(self) -> bool {
        matches!(self, Self::Uncommitted | Self::MaybeUncommitted)
    }

    /// Its word on a screen; a guess carries a question mark.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Its word in the JSON: what is a guess on a screen is unknown to a program.
    pub fn certain(self) -> &'static str {
        match self {
            Self::MaybeLost | Self::MaybeSlow | Self::MaybeRunning | Self::MaybeUncommitted => {
                Self::Unknown.as_str()
            }
            Self::Uncommitted => Self::Running.as_str(),
            state => state.as_str(),
        }
    }
}
