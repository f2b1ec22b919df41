use super::{Execution, JobState, Schedule, Streak, TaskId, TaskSet};
use crate::model::backend::BackendId;
use crate::model::judge::Sign;
use crate::model::lock::LockTag;
use crate::model::snapshot::Snapshot;
use crate::model::{Text, Timestamp};

/// A task, or one of several concurrent executions of it, or a key held for no execution.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskRow {
    pub task: TaskId,
    /// The execution, if the log has several running ones of this task and this is not the newest.
    pub again: Option<i64>,
    /// Index of its tables in [`Snapshot::task_sets`].
    pub set: usize,
    /// Index in the set's schedules; `None` if there is no such schedule.
    pub schedule: Option<usize>,
    /// Index of the running execution in the set's executions.
    pub execution: Option<usize>,
    /// The state as shown: for a running task, that of its execution.
    pub state: JobState,
    pub key: Sign,
    /// Seconds until it counts as an orphan, while its key has been free for less than the grace period.
    pub orphan_in: Option<f64>,
    /// Number of last executions that failed in a row.
    pub streak: Streak,
    /// The state of the schedule alone; `None` without one.
    pub schedule_state: Option<JobState>,
    /// The lock on its key, if the key is known.
    pub tag: Option<LockTag>,
    /// The process that holds it; `None` also for a prepared transaction.
    pub holder: Option<i32>,
    pub held: bool,
    pub last_holder: Option<BackendId>,
    /// Maximum duration of a run, in seconds.
    pub limit: f64,
    /// Since when the key has been free (orphan) or held for no execution (leaked).
    pub since: Option<Timestamp>,
}

impl TaskRow {
    /// `None` for another snapshot without these tables.
    pub fn set<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a TaskSet> {
        snapshot.task_sets.get(self.set)
    }

    /// `None` for a key without a task.
    pub fn schedule<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Schedule> {
        self.set(snapshot)?.tasks.last_rows().get(self.schedule?)
    }

    /// The last failed execution, if none has completed since.
    pub fn last_failed<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Execution> {
        self.set(snapshot)?.executions.last_rows().get(self.streak.last?)
    }

    /// `None` if no execution runs.
    pub fn execution<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Execution> {
        self.set(snapshot)?.executions.last_rows().get(self.execution?)
    }

    /// The task name: text of the server, not yet safe for a screen.
    pub fn name(&self, snapshot: &Snapshot) -> Text {
        let name = self.schedule(snapshot).and_then(|task| task.name.clone());
        name.unwrap_or_else(|| format!("task {}", self.task.id).into())
    }

    /// Run time of the execution, in seconds.
    pub fn age(&self, snapshot: &Snapshot) -> Option<f64> {
        let started_at = self.execution(snapshot)?.started_at?;
        Some((snapshot.taken_at - started_at).as_seconds_f64().max(0.0))
    }

    /// Seconds until it is due; negative if it is overdue.
    pub fn due_in(&self, snapshot: &Snapshot) -> Option<f64> {
        let next = self.schedule(snapshot)?.next_run_at?;
        Some((next - snapshot.taken_at).as_seconds_f64())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskBoard {
    /// A row for each task, and for each further execution and leaked key, in the order of the tables.
    pub rows: Vec<TaskRow>,
}

impl TaskBoard {
    pub fn count(&self, state: JobState) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }
}

/// The state of a schedule. `running`: the log has a running execution; `failed`: the last execution that ended has
/// failed. A task is overdue once it has been due for `overdue_after` seconds, and given up if it failed and nothing
/// starts it again.
pub(super) fn of_schedule(
    task: &Schedule,
    (running, failed): (bool, bool),
    now: Timestamp,
    overdue_after: f64,
) -> JobState {
    let due_for = task.next_run_at.map(|at| (now - at).as_seconds_f64()).filter(|seconds| *seconds >= 0.0);
    match due_for {
        _ if running => JobState::Running,
        _ if task.enabled == Some(false) => JobState::Disabled,
        Some(seconds) if seconds >= overdue_after => JobState::Overdue,
        Some(_) => JobState::Due,
        None if failed && task.next_run_at.is_none() => JobState::GivenUp,
        None => JobState::Idle,
    }
}
