use super::expected::ExpectedBlocker;

/// Limits for [`super::finding`], from the config's `[thresholds]`. Durations are in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    /// A wait longer than this is a finding.
    pub wait: f64,
    /// A root that is idle in transaction for longer than this is critical at once.
    pub idle_in_transaction: f64,
    /// A root that blocks at least this many is critical.
    pub blocked: u32,
    /// A convoy has at least this many waiters behind one request that itself waits.
    pub convoy: u32,
    /// A pile-up has at least this many backends waiting on one LWLock, SyncRep or IO event.
    pub pile_up: u32,
    /// Share of `max_connections` in use, 0 to 1.
    pub connections: f64,
    /// An idle session that holds a session-level lock for longer than this is a finding.
    pub idle_lock: f64,
    /// A task without a limit of its own is slow when it runs for longer than this.
    pub task_timeout: f64,
    /// A task that runs in the log while its key is free is an orphan after this long.
    pub orphan_grace: f64,
    /// A task that has been due for longer than this, and was not started, is overdue.
    pub task_overdue: f64,
    /// A queue item that no worker has taken for longer than this is a finding.
    pub queue_pending: f64,
    /// An id generator further ahead of the server's clock than this is a finding.
    pub id_ahead: f64,
    /// Expected blockers, from `[[expected]]`.
    pub expected: Vec<ExpectedBlocker>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            wait: 30.0,
            idle_in_transaction: 60.0,
            blocked: 10,
            convoy: 5,
            pile_up: 10,
            connections: 0.9,
            idle_lock: 600.0,
            task_timeout: 1800.0,
            orphan_grace: 30.0,
            task_overdue: 60.0,
            queue_pending: 600.0,
            id_ahead: 1.0,
            expected: Vec::new(),
        }
    }
}
