//! The tables of tasks, queue items, leases, rate limits, id generators and workers: their owners, whether these are trusted,
//! their sizes, ids of rows by table and name, and the rows. A missing column and a NULL both count as unknown.
//!
//! Using a table runs code of its owner with the privileges of the connected role. A table of an untrusted owner is shown
//! only as far as no such code runs, and is never acted on.

use std::hash::{DefaultHasher, Hash, Hasher};

use locktop_tasks::trust::remedy;

use crate::model::{Text, Timestamp};

rows! {
    as table_rows;

    /// A row of `scheduled_tasks`.
    #[derive(Default)]
    pub struct Schedule in Schedules {
        1 id: i64 = "id",
        2 name: Option<Text> = "task_name",
        /// Selects the workers that take it.
        3 kind: Option<Text> = "task_type",
        /// In cron syntax.
        4 cron: Option<Text> = "schedule_cron",
        /// NULL is false, since no worker takes such a task. None if the column does not exist.
        5 enabled: Option<bool> = "is_enabled",
        6 last_run_at: Option<Timestamp> = "last_run_at",
        7 next_run_at: Option<Timestamp> = "next_run_at",
        /// Tasks with a higher value are taken first.
        8 priority: Option<i64> = "priority",
        /// Longest allowed run, in seconds.
        9 timeout: Option<f64> = "timeout",
        /// Attempts before the task is given up.
        10 max_attempts: Option<i64> = "max_attempts",
        /// Failed attempts since the task last completed.
        11 attempts: Option<i64> = "attempts",
        /// The key of its executions by the expression in the config.
        12 key: Option<i64> = "",
        /// Pause before a failed attempt is repeated, in seconds; longer each time.
        13 retry_delay: Option<f64> = "retry_delay",
        /// That of `cron`.
        14 time_zone: Option<Text> = "time_zone",
    }

    /// A row of `task_execution_log`: one run of a task.
    #[derive(Default)]
    pub struct Execution in Executions {
        1 id: i64 = "id",
        2 task_id: i64 = "task_id",
        /// The name that the worker gives itself.
        3 worker: Option<Text> = "worker_id",
        /// `running`, `completed`, `failed`, or any other value.
        4 status: Option<Text> = "status",
        5 started_at: Option<Timestamp> = "started_at",
        /// None while it runs.
        6 completed_at: Option<Timestamp> = "completed_at",
        /// Truncated to 500 characters.
        7 error: Option<Text> = "error_message",
        /// The key that its session holds while it runs.
        8 lock_id: Option<i64> = "lock_id",
        /// Process ID of that session; None if the log has no such column.
        9 backend_pid: Option<i32> = "backend_pid",
        /// `backend_start` of that session; None if the log has no such column.
        10 backend_start: Option<Timestamp> = "backend_start",
        /// None if the log has no such column.
        11 attempt: Option<i64> = "attempt",
        12 heartbeat_at: Option<Timestamp> = "heartbeat_at",
        /// The name recorded when the row was closed for a worker that had disconnected; None if the worker closed it.
        13 recovered_by: Option<Text> = "recovered_by",
    }

    /// A row of `task_queue`: work that is done once.
    #[derive(Default)]
    pub struct Item in Items {
        1 id: i64 = "id",
        2 name: Option<Text> = "task_name",
        /// `pending`, `processing`, `completed`, `failed`, or any other value.
        3 status: Option<Text> = "status",
        /// The current or last worker.
        4 worker: Option<Text> = "worker_id",
        5 created_at: Option<Timestamp> = "created_at",
        6 started_at: Option<Timestamp> = "started_at",
        /// When it was completed or set aside.
        7 completed_at: Option<Timestamp> = "completed_at",
        8 attempt: Option<i64> = "attempt",
        9 max_attempts: Option<i64> = "max_attempts",
        /// Process ID of the session that took it.
        10 backend_pid: Option<i32> = "backend_pid",
        /// `backend_start` of that session, which distinguishes it from a later one.
        11 backend_start: Option<Timestamp> = "backend_start",
        12 heartbeat_at: Option<Timestamp> = "heartbeat_at",
        /// Truncated to 500 characters.
        13 error: Option<Text> = "error_message",
        /// Longest allowed attempt, in seconds.
        14 timeout: Option<f64> = "timeout",
        /// No worker takes it before then; in the past if it was never postponed.
        15 due_at: Option<Timestamp> = "due_at",
        /// The key that the config defines for it.
        16 key: Option<i64> = "",
        /// The last transaction that locked or changed its row, which may have ended; 0 if none did.
        17 locker: Option<u32> = "xmax",
        /// Attempts that failed; one that was lost or given back is not counted.
        18 failures: Option<i64> = "failures",
    }

    /// A row of `rate_limit`.
    #[derive(Default)]
    pub struct RateLimit in RateLimits {
        /// What is limited: the key of the row, as text.
        1 key: Text = "key",
        2 count: Option<i64> = "count",
        /// Start of the current window.
        3 window_start: Option<Timestamp> = "window_start",
        /// Capacity of a window; `None` for the published table, which does not have it.
        4 max_requests: Option<i64> = "max_requests",
        /// End of the window; `None` for the published table, which does not have it.
        5 expires_at: Option<Timestamp> = "expires_at",
    }

    /// A row of `id_generator`: the last id generated by a worker.
    #[derive(Default)]
    pub struct IdGenerator in Generators {
        1 worker: i64 = "worker_id",
        /// The sequence within the millisecond of the last id.
        2 sequence: Option<i64> = "sequence",
        /// The time of the last id, in milliseconds since 2021-01-01; 0 before the first.
        3 last_timestamp: Option<i64> = "last_timestamp",
    }
}

// Rows whose query has more than the columns of a table.
rows! {
    as queried_rows;

    /// A row of `distlock`.
    #[derive(Default)]
    pub struct Lease in Leases {
        1 id: Text,
        /// The current or last owner.
        2 owner: Option<Text>,
        /// When it was acquired or renewed.
        3 renewed_at: Option<Timestamp>,
        /// Its duration from a renewal on, in seconds.
        4 term: Option<f64>,
        5 expires_at: Option<Timestamp>,
        6 token: Option<i64>,
        /// When its current owner acquired it. None in a published table.
        7 acquired_at: Option<Timestamp>,
        8 released_at: Option<Timestamp>,
        9 backend_pid: Option<i32>,
        10 backend_start: Option<Timestamp>,
        /// `ctid`: page and line of the row, as in a tuple lock. None if not read.
        11 place: Option<(u32, u16)>,
        /// The name, if the lease is requested by name.
        12 name: Option<Text>,
    }

    /// The items of `task_queue` in one status.
    #[derive(Default)]
    pub struct StateCount in StateCounts {
        /// `pending`, `processing`, `completed`, `failed`, or any other value.
        1 status: Option<Text>,
        2 count: u64,
        3 is_more: bool,
        /// When the oldest counted item was added or is due; may be in the future.
        4 oldest_at: Option<Timestamp>,
        /// Items completed within the last minute; None if not known.
        5 last_minute: Option<u64>,
    }

    /// A row of `locktop_workers`: the announcement of one session.
    #[derive(Default)]
    pub struct TaskWorker in TaskWorkers {
        1 pid: i32,
        /// `backend_start`, which distinguishes the session from a later one with the same process ID.
        2 start: Option<Timestamp>,
        /// The name that the worker gives itself; None if it gave no name.
        3 name: Option<Text>,
        4 takes_tasks: bool,
        5 takes_items: bool,
        /// The types as a JSON list; None means all types.
        6 types: Option<Text>,
        /// By the server's clock.
        7 announced_at: Option<Timestamp>,
    }

    /// The counters of `refusals` at one moment. `None`: not known, for lack of a right or on a standby.
    #[derive(Default)]
    pub struct Refusals in RefusalRows {
        /// The time of the snapshot, in a sum over all tables; `None` in a row of one table.
        1 at: Option<Timestamp>,
        /// Requests over a rate limit.
        2 rate_limit: Option<i64>,
        /// Transfers refused because the version of an account had changed.
        3 transfer: Option<i64>,
        /// Leases that another owner had.
        4 lease: Option<i64>,
        /// Tasks whose key another session held.
        5 task: Option<i64>,
    }
}

impl TaskWorker {
    /// The types that it announced; None if it takes all.
    pub fn types(&self) -> Option<Vec<String>> {
        serde_json::from_str(self.types.as_deref()?).ok()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owner {
    /// Name of the role; empty if unknown.
    pub name: Text,
    /// An untrusted owner of the table, its schema or a part of it; `None` if all owners are trusted.
    pub stranger: Option<Text>,
    /// A table of another role that an unqualified name would mean if this untrusted table did not precede it on the search
    /// path.
    pub hides: Option<Text>,
}

impl Owner {
    /// Why no action is taken on the table; `None` if actions are allowed.
    pub fn refusal(&self, table: &str) -> Option<String> {
        let stranger = self.stranger.as_deref()?;
        Some(format!("{table} belongs to {stranger}, who is not trusted; {}", remedy(stranger)))
    }

    /// The fact shown in the dialog; `None` if the owner is unknown.
    pub fn fact(&self, table: &str) -> Option<String> {
        (!self.name.is_empty()).then(|| format!("table {table} of {}", self.name))
    }
}

/// The size of a log by the planner's statistics: an estimate that opens no table.
#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    /// Estimated number of rows (`pg_class.reltuples`); 0 if the table was never analyzed.
    pub rows: u64,
    /// Whether a setting of the database defines the retention.
    pub is_limited: bool,
    /// Estimated number of rows past the retention. None if not known.
    pub old: Option<u64>,
}

/// Always equal: a table is the same whatever its size.
impl PartialEq for Growth {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Growth {}

/// Identifies something by where it is stored and its name there. A hash of both, small enough to select and mark by; an
/// action needs the row itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameHash(pub(crate) u64);

impl NameHash {
    /// The id of `name` in the table, or on the server, `source`.
    pub fn of(source: &str, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (source, name).hash(&mut hasher);
        Self(hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untrusted_owner_is_named_with_the_remedy() {
        let owner = Owner { name: "app".into(), stranger: Some("app".into()), hides: None };
        let expected = "public.t belongs to app, who is not trusted; \
                        --trust-owner app, or trusted_owners = [\"app\"] in the config, permits it";
        assert_eq!(owner.refusal("public.t").as_deref(), Some(expected));
        let trusted = Owner { stranger: None, ..owner };
        assert_eq!(
            (trusted.refusal("t"), trusted.fact("public.t")),
            (None, Some("table public.t of app".to_owned()))
        );
        assert_eq!(Owner::default().fact("t"), None);
    }
}
