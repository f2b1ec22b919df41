//! How a task is: pure rules over what was seen.

use super::Schedule;
use crate::model::Timestamp;

/// How a task is. The order is that of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    /// Runs in the log, and its key is free: the session that ran it is gone.
    Orphan,
    /// Runs for longer than it may, and its key is held.
    Slow,
    /// Due for longer than a worker should need, and not started.
    Overdue,
    /// Its key is held and nothing runs.
    Leaked,
    /// Runs in the log; whether it really does cannot be told.
    Unknown,
    /// Runs.
    Running,
    /// Due since a moment ago.
    Due,
    /// Not due.
    Idle,
    /// Switched off.
    Disabled,
}

impl TaskState {
    /// Every state, the most urgent first.
    pub const ALL: [Self; 9] = [
        Self::Orphan,
        Self::Slow,
        Self::Overdue,
        Self::Leaked,
        Self::Unknown,
        Self::Running,
        Self::Due,
        Self::Idle,
        Self::Disabled,
    ];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "orphan",
            Self::Slow => "slow",
            Self::Overdue => "overdue",
            Self::Leaked => "leaked",
            Self::Unknown => "unknown",
            Self::Running => "running",
            Self::Due => "due",
            Self::Idle => "idle",
            Self::Disabled => "disabled",
        }
    }
}

/// What is seen of the key of a running execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeyState {
    /// Nothing: no key is stored, or the locks could not be read.
    Unseen,
    /// Nobody has held it for this many seconds, as far as was looked.
    Free(f64),
    /// Held by the session that the log names, or the log names none.
    Held,
    /// Held by another session than the log names; or it names none, and a task of other tables has the same key.
    HeldByOther,
}

/// What an execution that runs in the log is judged by. Durations are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// A standby: nobody there holds the keys of the primary.
    pub standby: bool,
    /// Whatever is seen of the key says nothing about this task: it is a raw number, or that of another task.
    pub ambiguous: bool,
    /// The key.
    pub key: KeyState,
    /// How long it has run.
    pub age: Option<f64>,
    /// How long it may.
    pub limit: f64,
    /// How long a key must have been free.
    pub grace: f64,
}

/// An execution this young may have begun after the locks were read.
const YOUNG: f64 = 2.0;

/// The state of an execution that runs in the log.
#[must_use]
pub fn of_execution(seen: &Evidence) -> TaskState {
    match seen.key {
        _ if seen.standby => TaskState::Unknown,
        KeyState::Held if seen.age.is_some_and(|age| age > seen.limit) => TaskState::Slow,
        KeyState::Held => TaskState::Running,
        KeyState::Free(_) if seen.age.is_some_and(|age| age < YOUNG) => TaskState::Running,
        KeyState::Free(seconds) if !seen.ambiguous && seconds >= seen.grace => TaskState::Orphan,
        KeyState::Unseen | KeyState::Free(_) | KeyState::HeldByOther => TaskState::Unknown,
    }
}

/// The state of a schedule, `running` where an execution of it runs in the log. It is overdue when it has been due for
/// `patience` seconds.
#[must_use]
pub fn of_schedule(task: &Schedule, running: bool, now: Timestamp, patience: f64) -> TaskState {
    let due_for = task.next_run_at.map(|at| (now - at).as_seconds_f64()).filter(|seconds| *seconds >= 0.0);
    match due_for {
        _ if running => TaskState::Running,
        _ if task.enabled == Some(false) => TaskState::Disabled,
        Some(seconds) if seconds >= patience => TaskState::Overdue,
        Some(_) => TaskState::Due,
        None => TaskState::Idle,
    }
}
