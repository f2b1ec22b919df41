//! An execution that the log has as running, as the server showed it.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use locktop_base::Timestamp;

/// How a running execution is, by the view `running_tasks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Its key is held, within its timeout.
    Running,
    /// Its key is held, past its timeout.
    Slow,
    /// Its key is free, and there was no sign of life for the grace.
    Orphan,
    /// Its key is free, and there was a sign of life within the grace, or the server has not been up for so long.
    Settling,
    /// Its key is not the task's: whether it runs cannot be told.
    Unknown,
}

impl RunState {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A row of `task_execution_log` with its task, and who holds the key. Texts are the server's: not yet fit for a screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// The execution.
    pub execution_id: i64,
    /// Its task.
    pub task_id: i64,
    /// The task's name.
    pub task_name: String,
    /// Who runs it by the log.
    pub worker_id: String,
    /// How it is.
    pub state: RunState,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// The worker's last sign of life after that.
    pub heartbeat_at: Option<Timestamp>,
    /// How long it has run, in seconds.
    pub run_seconds: Option<f64>,
    /// How long it may run, in seconds.
    pub timeout_seconds: Option<f64>,
    /// Which attempt it is, by the failures that its task counts.
    pub attempt: i64,
    /// At which attempt it is given up.
    pub max_attempts: i64,
    /// When it is tried again after this attempt failed, in seconds.
    pub retry_seconds: Option<f64>,
    /// Whether its task has a schedule.
    pub is_scheduled: bool,
    /// Whether its task is enabled.
    pub is_enabled: bool,
    /// The key.
    pub lock_id: Option<i64>,
    /// Who holds it: a process id; none also for a prepared transaction.
    pub holder_pid: Option<i32>,
    /// When that session began; none also where this role may not see it.
    pub holder_start: Option<Timestamp>,
    /// Whether a prepared transaction is among the holders.
    pub held_by_prepared: bool,
    /// The session that ran it by the log.
    pub backend_pid: Option<i32>,
    /// When that session began.
    pub backend_start: Option<Timestamp>,
}

impl Running {
    /// The last that was heard of it.
    #[must_use]
    pub fn last_seen_at(&self) -> Option<Timestamp> {
        self.started_at.max(self.heartbeat_at)
    }

    /// Whether a failure now is the last attempt.
    #[must_use]
    pub fn gives_up(&self) -> bool {
        self.attempt >= self.max_attempts
    }
}
