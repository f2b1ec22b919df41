//! Workers of locktop's schema, and which types of work each takes: what it said when it connected (`announce_worker()`).

use super::{Text, Timestamp};

/// A row of `locktop_workers`: what one session has announced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskWorker {
    /// `pg_backend_pid()` of its session.
    pub pid: i32,
    /// `backend_start` of that session, which tells it from a later one with the same process id.
    pub start: Option<Timestamp>,
    /// What the worker calls itself; none where it gave no name.
    pub name: Option<Text>,
    /// Whether it runs the tasks of `scheduled_tasks`.
    pub takes_tasks: bool,
    /// Whether it works off the items of `task_queue`.
    pub takes_items: bool,
    /// The types as a list of JSON; none: all of them.
    pub types: Option<Text>,
    /// The server's clock when it announced itself.
    pub announced_at: Option<Timestamp>,
}

impl TaskWorker {
    /// The types that it takes; none: all of them.
    pub fn types(&self) -> Option<Vec<String>> {
        serde_json::from_str(self.types.as_deref()?).ok()
    }
}
