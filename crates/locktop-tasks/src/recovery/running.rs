use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use locktop_base::Timestamp;

/// The state of a running execution, by the view `running_tasks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Its key is held, within its timeout.
    Running,
    /// Its key is held, past its timeout.
    Slow,
    /// Its key is free, and there was no sign of life within the grace.
    Orphan,
    /// Its key is free, and there was a sign of life within the grace, or the server has been up for less than the grace.
    Settling,
    /// Its key is not the task's: it is not known whether it is running.
    Unknown,
}

impl RunState {
    /// The word for it in the column `state` of the view, and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A row of `task_execution_log` with its task and the holder of its key. Texts are as the server sent them: not yet safe
/// for a screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningExecution {
    /// `task_execution_log.id` of the execution.
    pub execution_id: i64,
    /// `scheduled_tasks.id` of its task.
    pub task_id: i64,
    /// `scheduled_tasks.task_name` of its task.
    pub task_name: String,
    /// `worker_id`: the name of the worker that runs it, by the log.
    pub worker_id: String,
    /// Whether its key is held and its timeout has passed, by the server.
    pub state: RunState,
    /// When it began; `None` if the log has no time or an unusable one, such as infinity.
    pub started_at: Option<Timestamp>,
    /// The last heartbeat of its worker; `None` before the first one.
    pub heartbeat_at: Option<Timestamp>,
    /// How long it has run, in seconds; `None` if it is not known when it began.
    pub run_seconds: Option<f64>,
    /// `scheduled_tasks.timeout`, how long it may run, in seconds; `None` if infinite.
    pub timeout_seconds: Option<f64>,
    /// Which attempt it is, by the failure count of its task.
    pub attempt: i64,
    /// At which attempt the task is given up.
    pub max_attempts: i64,
    /// How long its task pauses after this attempt failed, in seconds; `None` if its `retry_delay` is infinite.
    pub retry_seconds: Option<f64>,
    /// Whether its task has a schedule (`schedule_cron`), and so runs again whatever the result of this execution.
    pub is_scheduled: bool,
    /// Whether its task is enabled (`is_enabled`): otherwise it does not run again.
    pub is_enabled: bool,
    /// The key of the advisory lock that its session holds while it runs; `None` if the log has none.
    pub lock_id: Option<i64>,
    /// The process id of the session that holds it; `None` also for a prepared transaction.
    pub holder_pid: Option<i32>,
    /// When that session began; `None` also if this role cannot see it.
    pub holder_start: Option<Timestamp>,
    /// Whether a prepared transaction is among the holders.
    pub held_by_prepared: bool,
    /// The process id of the session that ran it, by the log.
    pub backend_pid: Option<i32>,
    /// When that session began (`backend_start`); together with the process id it identifies one session.
    pub backend_start: Option<Timestamp>,
}

impl RunningExecution {
    /// The later of its start and its last heartbeat; `None` if neither is known.
    #[must_use]
    pub fn last_seen_at(&self) -> Option<Timestamp> {
        self.started_at.max(self.heartbeat_at)
    }

    /// Whether a failure now would be the last attempt.
    #[must_use]
    pub fn gives_up(&self) -> bool {
        self.attempt >= self.max_attempts
    }
}

/// An execution that was not requested, and that ends with a session that is terminated for another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlsoEnded {
    /// `task_execution_log.id` of the execution.
    pub execution_id: i64,
    /// The name of its task, as the server sent it.
    pub task_name: String,
    /// The consequence for it, in words.
    pub effect: String,
}

/// A session: its process and when it began.
pub(super) type Session = (i32, Timestamp);

pub(super) fn holder(seen: &RunningExecution) -> Option<Session> {
    seen.holder_pid.zip(seen.holder_start)
}

pub(super) fn also(seen: &RunningExecution) -> AlsoEnded {
    AlsoEnded { execution_id: seen.execution_id, task_name: seen.task_name.clone(), effect: cost(seen) }
}

/// The consequence for an execution when its session ends: sooner or later it is recovered too, as a failed attempt.
pub(super) fn cost(seen: &RunningExecution) -> String {
    let RunningExecution { attempt, max_attempts, .. } = seen;
    match (seen.gives_up(), seen.is_scheduled) {
        (false, _) => format!("loses attempt {attempt} of {max_attempts}"),
        (true, false) => format!("fails for good: attempt {attempt} of {max_attempts}"),
        (true, true) => {
            format!("failed for good after attempt {attempt} of {max_attempts}; runs next by its schedule")
        }
    }
}

/// The result for one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum RecoveryOutcome {
    /// Marked as failed in the log; its task is due again.
    Recovered,
    /// Marked as failed in the log; it was the last attempt.
    GaveUp,
    /// It had already ended, or was recovered by another client.
    NotRunning,
    /// The plan leaves it alone, so nothing was sent.
    LeftAlone,
    /// The execution no longer exists.
    NotFound,
    /// It differs from the plan: another worker or session, or a sign of life since.
    Changed,
    /// Another session has its row or its task locked.
    Locked,
    /// A session holds its key, so it may still run.
    Held,
    /// The session of this recovery holds its key.
    HeldByUs,
    /// A prepared transaction holds its key.
    Prepared,
    /// Several sessions hold its key in shared mode.
    Shared,
    /// The server cannot tell whether it runs.
    Unknown,
    /// It is still within its timeout, so its session is not terminated.
    NotSlow,
    /// This role cannot see when the holder's session began.
    Hidden,
    /// The role lacks a privilege that the recovery needs. Nothing was done.
    Forbidden,
    /// The server refused for another reason. Nothing was done.
    Failed,
    /// The connection was lost midway, or there was no readable answer in time: it is not known what was done.
    Uncertain,
    /// Not tried, since an earlier result is not known.
    NotTried,
}

impl RecoveryOutcome {
    /// The outcome as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses the server's word; `None` for any other, and for the outcomes that only locktop reports.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let ours = [Self::LeftAlone, Self::Forbidden, Self::Failed, Self::Uncertain, Self::NotTried];
        word.parse().ok().filter(|outcome| !ours.contains(outcome))
    }

    /// Whether this recovery closed it.
    #[must_use]
    pub const fn is_recovered(self) -> bool {
        matches!(self, Self::Recovered | Self::GaveUp)
    }

    /// Whether nothing is left to recover, whether this recovery or another closed it.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Recovered | Self::GaveUp | Self::NotRunning)
    }
}

/// The result for one execution, and the server's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoveryResult {
    /// `task_execution_log.id` of the execution.
    pub execution_id: i64,
    /// Whether it was recovered, or why not.
    pub outcome: RecoveryOutcome,
    /// The observation, or the reason; may contain text from the server.
    pub detail: String,
    /// The process id of the session that holds its key; `None` if there is none or the server did not report it.
    pub holder_pid: Option<i32>,
    /// The process id of the session that was requested to end; `None` if there was none.
    pub ended_pid: Option<i32>,
    /// Other executions that were seen in its session; empty if it was not requested to end, or not by this recovery.
    pub also_ended: Vec<AlsoEnded>,
    /// The row of `locktop_audit` that requested that.
    pub audit_id: Option<i64>,
    /// When the task runs next; `None` if it does not, or was not recovered.
    pub next_run_at: Option<Timestamp>,
}

impl RecoveryResult {
    /// A result with only an outcome and its detail.
    #[must_use]
    pub fn new(execution_id: i64, outcome: RecoveryOutcome, detail: impl Into<String>) -> Self {
        Self {
            execution_id,
            outcome,
            detail: detail.into(),
            holder_pid: None,
            ended_pid: None,
            also_ended: Vec::new(),
            audit_id: None,
            next_run_at: None,
        }
    }
}
