use strum::{IntoStaticStr, VariantArray};

use crate::model::adapter::State;
use crate::model::judge::Judged;
use crate::model::lock_name::LockName;
use crate::model::systems::TableRows;
use crate::model::{Text, Timestamp, namespace};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId {
    pub table: u32,
    pub id: i64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct StateCount {
    /// `pending`, `processing`, `completed`, `failed`, or any other value.
    pub status: Option<Text>,
    pub count: u64,
    pub is_more: bool,
    /// When the oldest counted item was added or is due; may be in the future.
    pub oldest_at: Option<Timestamp>,
    /// Items completed within the last minute; None if not known.
    pub last_minute: Option<u64>,
}

/// A row of `task_queue`: work that is done once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Item {
    pub id: i64,
    pub name: Option<Text>,
    /// `pending`, `processing`, `completed`, `failed`, or any other value.
    pub status: Option<Text>,
    /// The current or last worker.
    pub worker: Option<Text>,
    pub created_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    /// When it was completed or set aside.
    pub completed_at: Option<Timestamp>,
    pub attempt: Option<i64>,
    pub max_attempts: Option<i64>,
    /// Process ID of the session that took it.
    pub backend_pid: Option<i32>,
    /// `backend_start` of that session, which distinguishes it from a later one.
    pub backend_start: Option<Timestamp>,
    pub heartbeat_at: Option<Timestamp>,
    /// Truncated to 500 characters.
    pub error: Option<Text>,
    /// Longest allowed attempt, in seconds.
    pub timeout: Option<f64>,
    /// No worker takes it before then; in the past if it was never postponed.
    pub due_at: Option<Timestamp>,
    /// The key that the config defines for it.
    pub key: Option<i64>,
    /// The last transaction that locked or changed its row (`xmax`), which may have ended; 0 if none did.
    pub locker: Option<u32>,
}

impl Item {
    pub fn is_processing(&self) -> bool {
        self.status.as_deref() == Some("processing")
    }

    pub fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }
}

/// State of an item, in order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ItemState {
    /// In progress in the table, but its session ended so long ago that its worker has stopped.
    Lost,
    /// In progress in the table, but its expected key is free; it is a guess that its worker took that key.
    #[strum(serialize = "lost?")]
    MaybeLost,
    /// In progress for longer than its limit.
    Slow,
    /// The same, but nothing links the holder of its key to its worker.
    #[strum(serialize = "slow?")]
    MaybeSlow,
    /// In progress in the table, but whether it really is cannot be determined.
    Unknown,
    /// In progress in the table, but the session that took it has ended, or its key is free: its worker may not know that yet.
    Settling,
    /// In progress in the table; nothing links the holder of its key to its worker.
    #[strum(serialize = "running?")]
    MaybeRunning,
    /// In progress, with an existing session and within its limit.
    Running,
    /// A session holds its key in an open transaction: its change of the row is not visible before it commits.
    #[strum(serialize = "running (uncommitted)")]
    Uncommitted,
    /// The same, but the key is a guess.
    #[strum(serialize = "running? (uncommitted)")]
    MaybeUncommitted,
    /// Set aside after its last attempt or manually: no worker takes it.
    Failed,
    /// Not taken; the next free worker may take it.
    Pending,
    /// Not taken and not yet due: postponed for a retry, or added for later.
    Resting,
}

impl ItemState {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The state of an item in progress.
    pub fn of(judged: &Judged) -> Self {
        match (judged.state, judged.is_guess) {
            (State::Orphan, false) => Self::Lost,
            (State::Orphan, true) => Self::MaybeLost,
            (State::Slow, false) => Self::Slow,
            (State::Slow, true) => Self::MaybeSlow,
            (State::Running, false) => Self::Running,
            (State::Running, true) => Self::MaybeRunning,
            _ if judged.is_undecided() => Self::Settling,
            _ => Self::Unknown,
        }
    }

    pub const fn is_uncommitted(self) -> bool {
        matches!(self, Self::Uncommitted | Self::MaybeUncommitted)
    }

    /// The word on a screen; a guess has a question mark.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The word in JSON: a guess is reported as unknown.
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

/// The name of the item behind a bigint key of the database that the tables were read from: `queue item 7`. A key of the
/// namespace is certain if exactly one item has its id; a raw number may belong to any program, so its name is always a
/// guess.
pub fn name_of(tables: &[TableRows<Item>], number: i64) -> Option<LockName> {
    let own = namespace::id_in(namespace::QUEUE, number);
    let id = own.unwrap_or(number);
    let mut owners = tables.iter().filter(|table| {
        let fits = table.source.own_keys == own.is_some();
        fits && table
            .section
            .last_rows()
            .iter()
            .any(|item| item.id == id && (own.is_some() || !item.is_over()))
    });
    let table = owners.next()?;
    let origin = match own {
        Some(id) => format!("the key of item {id} in {}", table.source.name),
        None => format!("the same number as an item that is not done in {}", table.source.name),
    };
    let uncertain = own.is_none() || owners.next().is_some();
    Some(LockName { name: format!("queue item {id}").into(), uncertain, origin: origin.into() })
}
