//! Which columns of each published table are read, and which of ours are written.

use super::column::Kind;

/// A table as it was published, and what becomes of its columns.
#[derive(Debug)]
pub(super) struct Published {
    /// What it is called, there and here.
    pub(super) name: &'static str,
    /// Without these it is another table of that name.
    pub(super) needed: &'static [(&'static str, Kind)],
    /// What has to be of this type where it is there: to pass over it would do harm.
    pub(super) strict: &'static [&'static str],
    /// What else is read of it.
    pub(super) known: &'static [(&'static str, Kind)],
    /// What of ours is written, beside the id.
    pub(super) written: &'static str,
}

impl Published {
    /// All that is read.
    pub(super) fn read(&self) -> Vec<(&'static str, Kind)> {
        self.needed.iter().chain(self.known).copied().collect()
    }
}

/// As published, and two columns that many add and ours have with this meaning.
pub(super) const TASKS: Published = Published {
    name: "scheduled_tasks",
    needed: &[("id", Kind::Integer), ("task_name", Kind::Text), ("task_type", Kind::Text)],
    // What is disabled there would be enabled here.
    strict: &["is_enabled"],
    known: &[
        ("schedule_cron", Kind::Text),
        ("is_enabled", Kind::Boolean),
        ("last_run_at", Kind::Time),
        ("next_run_at", Kind::Time),
        ("created_at", Kind::Time),
        ("priority", Kind::Integer),
        ("payload", Kind::Json),
    ],
    written: "task_name, task_type, schedule_cron, is_enabled, last_run_at, next_run_at, created_at, priority, payload",
};

/// The number of the key is read to know whether it is held; here it would be another one.
pub(super) const LOG: Published = Published {
    name: "task_execution_log",
    needed: &[("id", Kind::Integer), ("task_id", Kind::Integer), ("status", Kind::Text)],
    strict: &[],
    known: &[
        ("worker_id", Kind::Text),
        ("started_at", Kind::Time),
        ("completed_at", Kind::Time),
        ("error_message", Kind::Text),
        ("lock_id", Kind::Integer),
    ],
    written: "task_id, worker_id, status, started_at, completed_at, error_message, recovered_by",
};

/// `task_queue`: the work queue.
pub(super) const QUEUE: Published = Published {
    name: "task_queue",
    needed: &[("id", Kind::Integer), ("status", Kind::Text)],
    strict: &[],
    known: &[
        ("task_name", Kind::Text),
        ("payload", Kind::Json),
        ("worker_id", Kind::Text),
        ("created_at", Kind::Time),
        ("started_at", Kind::Time),
        ("completed_at", Kind::Time),
    ],
    written: "task_name, payload, status, worker_id, created_at, started_at, completed_at, attempt, failures, error_message",
};
