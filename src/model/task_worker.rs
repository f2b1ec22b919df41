//! Workers of locktop's schema and the types of work that they announced (`announce_worker()`).

use super::{Text, Timestamp};

/// A row of `locktop_workers`: the announcement of one session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskWorker {
    pub pid: i32,
    /// `backend_start`, which distinguishes the session from a later one with the same process ID.
    pub start: Option<Timestamp>,
    /// The name that the worker gives itself; None if it gave no name.
    pub name: Option<Text>,
    pub takes_tasks: bool,
    pub takes_items: bool,
    /// The types as a JSON list; None means all types.
    pub types: Option<Text>,
    /// By the server's clock.
    pub announced_at: Option<Timestamp>,
}

impl TaskWorker {
    pub fn types(&self) -> Option<Vec<String>> {
        serde_json::from_str(self.types.as_deref()?).ok()
    }
}
