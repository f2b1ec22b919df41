use strum::{IntoStaticStr, VariantArray};

use super::Schedule;
use crate::model::Timestamp;

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

/// State of the key of a running execution, and what it proves about its worker.
///
/// If the key is free, the worker does not hold it: the only doubt is whether the worker ever took that number. If the
/// key is held, any session may hold it: it is evidence for the worker only if something links the holder to the worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyState {
    /// The number is not known, or the locks could not be read.
    Unseen,
    /// The expected number is not held.
    Free {
        /// How long it has been free, as far as known.
        seconds: f64,
        /// The proof that the number belongs to this execution; None if it is a guess.
        proof: Option<Proof>,
    },
    /// Held by the session of its worker.
    Held,
    /// Held, but nothing links the holder to its worker.
    HeldBySomebody,
    /// Held by a session other than the one in the log.
    HeldByOther,
    /// Held for another execution, which is newer or whose worker holds it.
    HeldForOther,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The number is in the namespace of tasks, with the id of this task.
    Namespace,
    Config,
    /// The row stores it as `lock_id`, and it is the id of the task, as in the published functions.
    Row,
    /// A function in the schema of the tables locks it.
    Function,
    /// The session seen to hold it while this execution ran has ended.
    SeenEnding,
}

/// Evidence for the state of a running execution. Durations are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// On a standby, no session holds the keys of the primary.
    pub standby: bool,
    pub key: KeyState,
    pub age: Option<f64>,
    /// Longest allowed run, from its row or `[thresholds] task_timeout`.
    pub limit: f64,
    /// How long a key must be free before its execution is an orphan.
    pub grace: f64,
}

/// An execution this young may have begun after the locks were read.
const YOUNG: f64 = 2.0;

/// The state of a running execution. The only rule for it: used by the screens, the findings, `snapshot` and the action
/// `R`.
pub fn of_execution(seen: &Evidence) -> TaskState {
    let is_over = seen.age.is_some_and(|age| age > seen.limit);
    match seen.key {
        _ if seen.standby => TaskState::Unknown,
        KeyState::Held if is_over => TaskState::Slow,
        KeyState::Held => TaskState::Running,
        KeyState::HeldBySomebody if is_over => TaskState::MaybeSlow,
        KeyState::HeldBySomebody => TaskState::MaybeRunning,
        KeyState::Free { .. } if seen.age.is_some_and(|age| age < YOUNG) => TaskState::Running,
        KeyState::Free { seconds, .. } if seconds < seen.grace => TaskState::Settling,
        KeyState::Free { proof: Some(_), .. } => TaskState::Orphan,
        KeyState::Free { proof: None, .. } => TaskState::MaybeOrphan,
        KeyState::HeldForOther => TaskState::LeftOver,
        KeyState::Unseen | KeyState::HeldByOther => TaskState::Unknown,
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
