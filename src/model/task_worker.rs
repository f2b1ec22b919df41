//! Workers of locktop's schema, and which types of work each takes: what it said when it connected (`announce_worker()`).

use super::{Text, Timestamp};

/// A row of `locktop_workers`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskWorker {
    /// Process id of its session.
    pub pid: i32,
    /// When that session began.
    pub start: Option<Timestamp>,
    /// Its name.
    pub name: Option<Text>,
    /// Whether it works on `scheduled_tasks`.
    pub takes_tasks: bool,
    /// Whether it works on `task_queue`.
    pub takes_items: bool,
    /// The types as a list of JSON; none: all of them.
    pub types: Option<Text>,
    /// When it said so.
    pub announced_at: Option<Timestamp>,
}

impl TaskWorker {
    /// The types that it takes; none: all of them.
    #[must_use]
    pub fn types(&self) -> Option<Vec<String>> {
        serde_json::from_str(self.types.as_deref()?).ok()
    }
}
