//! How a task is: pure rules over what was seen.

use strum::{IntoStaticStr, VariantArray};

use super::Schedule;
use crate::model::Timestamp;

/// How a task is. The order is that of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum TaskState {
    /// Runs in the log, and its key is free: the session that ran it is gone.
    Orphan,
    /// Runs in the log, and the number that its key should be is free; whether its worker ever took that number is a guess.
    #[strum(serialize = "orphan?")]
    MaybeOrphan,
    /// Runs for longer than it may, and its session holds its key.
    Slow,
    /// Runs in the log for longer than it may, and somebody holds its key whom nothing ties to its worker.
    #[strum(serialize = "slow?")]
    MaybeSlow,
    /// Given up: its last attempts failed, and nothing starts it again.
    Failed,
    /// Due for longer than a worker should need, and not started.
    Overdue,
    /// Its key is held and nothing runs.
    Leaked,
    /// Runs in the log, and its key is held for a newer row or another worker: left over.
    LeftOver,
    /// Runs in the log, and its key is free, for less than the grace: an orphan soon, unless it ends by itself.
    Settling,
    /// Runs in the log; whether it really does cannot be told.
    Unknown,
    /// Runs in the log, and somebody holds its key whom nothing ties to its worker.
    #[strum(serialize = "running?")]
    MaybeRunning,
    /// Runs in the log, and its worker's session holds its key, or it began a moment ago.
    Running,
    /// A session holds its key in an open transaction: what that wrote to the log is not visible before it commits.
    #[strum(serialize = "running (uncommitted)")]
    Uncommitted,
    /// The same with a number that is its key only by a guess.
    #[strum(serialize = "running? (uncommitted)")]
    MaybeUncommitted,
    /// Due, and not for longer than a worker should need.
    Due,
    /// Not due yet, and nothing runs.
    Idle,
    /// Switched off: no worker takes it (`is_enabled`).
    Disabled,
}

impl TaskState {
    /// Whether a session works on it in a transaction whose changes are not visible yet.
    pub const fn is_uncommitted(self) -> bool {
        matches!(self, Self::Uncommitted | Self::MaybeUncommitted)
    }

    /// Every state, the most urgent first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its word on a screen; a guess carries a question mark.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Its word in the JSON: what is a guess on a screen is unknown to a program, which finds the guess beside it.
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

    /// What it most likely is, where that is not certain.
    pub const fn guess(self) -> Option<&'static str> {
        match self {
            Self::MaybeOrphan | Self::LeftOver => Some("orphan"),
            Self::MaybeSlow => Some("slow"),
            Self::MaybeRunning | Self::MaybeUncommitted => Some("running"),
            _ => None,
        }
    }
}

/// What is seen of the key of a running execution, and what that proves of its worker.
///
/// A key that is free is held by nobody, so surely not by the worker: the only doubt left is whether the worker ever took that number.
/// A key that is held may be held by anybody: it speaks for the worker only where something ties the holder to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyState {
    /// Nothing: its number is not known, or the locks could not be read.
    Unseen,
    /// Nobody holds the number that the key should be.
    Free {
        /// For so many seconds, as far as that is known.
        seconds: f64,
        /// Why the number is that of this execution; none where that is a guess.
        proof: Option<Proof>,
    },
    /// Held by the session of its worker.
    Held,
    /// Held by somebody whom nothing ties to its worker.
    HeldBySomebody,
    /// Held by another session than the log names.
    HeldByOther,
    /// Held for another execution, which this one is older than or whose worker holds it.
    HeldForOther,
}

/// What proves that an execution locks the number that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It is in the namespace of tasks, with the id of this one.
    Namespace,
    /// The config says what is locked.
    Config,
    /// Its row stores it as `lock_id`, and it is the id of its task, as the published functions have it.
    Row,
    /// A function beside the tables locks it.
    Function,
    /// The session that held it while this one ran was seen, and has ended.
    SeenEnding,
}

/// What an execution that runs in the log is judged by. Durations are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// A standby: nobody there holds the keys of the primary.
    pub standby: bool,
    /// What is seen of the key of the execution.
    pub key: KeyState,
    /// How long it has run; none where its start is not known.
    pub age: Option<f64>,
    /// How long a run may take, by its row or `[thresholds] task_timeout`.
    pub limit: f64,
    /// How long a key must have been free.
    pub grace: f64,
}

/// An execution this young may have begun after the locks were read.
const YOUNG: f64 = 2.0;

/// The state of an execution that runs in the log: the one rule, for the screens, the findings, `snapshot` and what `R` may do.
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

/// The state of a schedule, `running` where an execution of it runs in the log, `failed` where the last one that ended did. It is overdue
/// when it has been due for `overdue_after` seconds; given up when nothing starts it again after a failure.
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
