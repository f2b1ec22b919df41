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
