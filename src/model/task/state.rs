use strum::{IntoStaticStr, VariantArray};

use super::Schedule;
use crate::model::Timestamp;
use crate::model::adapter::State;
use crate::model::judge::Judged;

/// State of a task, in order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum TaskState {
    /// Runs in the log, but its key is free: the session that ran it has ended.
    Orphan,
    /// Runs in the log, but its expected key is free; it is a guess that its worker took that key.
    #[strum(serialize = "orphan?")]
    MaybeOrphan,
    /// Runs longer than its limit, and its session holds its key.
    Slow,
    /// Runs in the log for longer than its limit; nothing links the holder of its key to its worker.
    #[strum(serialize = "slow?")]
    MaybeSlow,
    /// Given up: its last attempts failed, and nothing starts it again.
    Failed,
    /// Due for longer than a worker should need, but not started.
    Overdue,
    /// Its key is held, but nothing runs.
    Leaked,
    /// Stale: runs in the log, but its key is held for a newer row or another worker.
    LeftOver,
    /// Runs in the log, and its key has been free for less than the grace period. It becomes an orphan unless it ends first.
    Settling,
    /// Runs in the log, but whether it really runs cannot be determined.
    Unknown,
    /// Runs in the log; nothing links the holder of its key to its worker.
    #[strum(serialize = "running?")]
    MaybeRunning,
    /// Runs in the log, and its worker's session holds its key, or it began a moment ago.
    Running,
    /// A session holds its key in an open transaction: its changes to the log are not visible before it commits.
    #[strum(serialize = "running (uncommitted)")]
    Uncommitted,
    /// The same, but the key is a guess.
    #[strum(serialize = "running? (uncommitted)")]
    MaybeUncommitted,
    /// Due, but not for longer than a worker should need.
    Due,
    Idle,
    /// Disabled (`is_enabled`): no worker takes it.
    Disabled,
}

impl TaskState {
    /// The state of a running execution.
    pub fn of(judged: &Judged) -> Self {
        match (judged.state, judged.is_guess) {
            (State::Orphan, false) => Self::Orphan,
            (State::Orphan, true) => Self::MaybeOrphan,
            (State::Slow, false) => Self::Slow,
            (State::Slow, true) => Self::MaybeSlow,
            (State::Running, false) => Self::Running,
            (State::Running, true) => Self::MaybeRunning,
            (State::Unknown, true) => Self::LeftOver,
            _ if judged.is_undecided() => Self::Settling,
            _ => Self::Unknown,
        }
    }

    pub const fn is_uncommitted(self) -> bool {
        matches!(self, Self::Uncommitted | Self::MaybeUncommitted)
    }

    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The word on a screen; a guess has a question mark.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The word in JSON: a guess is reported as unknown, with the guess in a separate field.
    pub fn certain(self) -> &'static str {
        match self {
            Self::MaybeOrphan
            | Self::MaybeSlow
            | Self::MaybeRunning
            | Self::MaybeUncommitted
            | Self::LeftOver => "unknown",
            Self::Uncommitted => Self::Running.as_str(),
            state => state.as_str(),
        }
    }

    /// The most likely state, if the state is not certain.
    pub const fn guess(self) -> Option<&'static str> {
        match self {
            Self::MaybeOrphan | Self::LeftOver => Some("orphan"),
            Self::MaybeSlow => Some("slow"),
            Self::MaybeRunning | Self::MaybeUncommitted => Some("running"),
            _ => None,
        }
    }
}

/// The state of a schedule. `running`: the log has a running execution; `failed`: the last execution that ended has
/// failed. A task is overdue once it has been due for `overdue_after` seconds, and given up if it failed and nothing
/// starts it again.
pub fn of_schedule(
    task: &Schedule,
    (running, failed): (bool, bool),
    now: Timestamp,
    overdue_after: f64,
) -> TaskState {
    let due_for = task.next_run_at.map(|at| (now - at).as_seconds_f64()).filter(|seconds| *seconds >= 0.0);
    match due_for {
        _ if running => TaskState::Running,
        _ if task.enabled == Some(false) => TaskState::Disabled,
        Some(seconds) if seconds >= overdue_after => TaskState::Overdue,
        Some(_) => TaskState::Due,
        None if failed && task.next_run_at.is_none() => TaskState::Failed,
        None => TaskState::Idle,
    }
}
