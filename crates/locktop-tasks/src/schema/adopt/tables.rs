//! Which columns of each published table are read, and which of locktop's are written.

use super::column::ColumnKind;

/// A published table, and the use of its columns.
#[derive(Debug)]
pub(super) struct Published {
    /// The table's name, there and here.
    pub(super) name: &'static str,
    /// A table without these is a different table of that name.
    pub(super) needed: &'static [(&'static str, ColumnKind)],
    /// Columns that must have their type if they exist: to ignore them would do harm.
    pub(super) strict: &'static [&'static str],
    /// Other columns that are read.
    pub(super) known: &'static [(&'static str, ColumnKind)],
    /// Columns of locktop's table that are written, in addition to the id.
    pub(super) written: &'static str,
}

impl Published {
    pub(super) fn read(&self) -> Vec<(&'static str, ColumnKind)> {
        self.needed.iter().chain(self.known).copied().collect()
    }
}

/// As published, and two columns that many installations add and that locktop's table has with this meaning.
pub(super) const TASKS: Published = Published {
    name: "scheduled_tasks",
    needed: &[("id", ColumnKind::Integer), ("task_name", ColumnKind::Text), ("task_type", ColumnKind::Text)],
    // Otherwise a task that is disabled there would be enabled here.
    strict: &["is_enabled"],
    known: &[
        ("schedule_cron", ColumnKind::Text),
        ("is_enabled", ColumnKind::Boolean),
        ("last_run_at", ColumnKind::Time),
        ("next_run_at", ColumnKind::Time),
        ("created_at", ColumnKind::Time),
        ("priority", ColumnKind::Integer),
        ("payload", ColumnKind::Json),
    ],
    written: "task_name, task_type, schedule_cron, is_enabled, last_run_at, next_run_at, created_at, priority, payload",
};

/// The key is read to check whether it is held; here it would be another number.
pub(super) const LOG: Published = Published {
    name: "task_execution_log",
    needed: &[("id", ColumnKind::Integer), ("task_id", ColumnKind::Integer), ("status", ColumnKind::Text)],
    strict: &[],
    known: &[
        ("worker_id", ColumnKind::Text),
        ("started_at", ColumnKind::Time),
        ("completed_at", ColumnKind::Time),
        ("error_message", ColumnKind::Text),
        ("lock_id", ColumnKind::Integer),
    ],
    written: "task_id, worker_id, status, started_at, completed_at, error_message, recovered_by",
};

pub(super) const QUEUE: Published = Published {
    name: "task_queue",
    needed: &[("id", ColumnKind::Integer), ("status", ColumnKind::Text)],
    strict: &[],
    known: &[
        ("task_name", ColumnKind::Text),
        ("payload", ColumnKind::Json),
        ("worker_id", ColumnKind::Text),
        ("created_at", ColumnKind::Time),
        ("started_at", ColumnKind::Time),
        ("completed_at", ColumnKind::Time),
    ],
    written: "task_name, payload, status, worker_id, created_at, started_at, completed_at, attempt, failures, error_message",
};
