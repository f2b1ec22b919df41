//! Every task of a snapshot with its state.

use super::{Execution, KeyState, Schedule, Streak, TaskId, TaskSet, TaskState};
use crate::model::backend::BackendId;
use crate::model::lock::LockTag;
use crate::model::snapshot::Snapshot;
use crate::model::{Text, Timestamp};

/// A task, or one of several executions of it that run at once, or a key that somebody holds for nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    /// The task that the row is of, also where it has no schedule.
    pub task: TaskId,
    /// The execution, where the log has several running ones of this task and this is not the newest.
    pub again: Option<i64>,
    /// Index of its tables in [`Snapshot::task_sets`].
    pub set: usize,
    /// Index in the set's schedules; none where there is no such schedule.
    pub schedule: Option<usize>,
    /// Index in the set's executions, of the one that runs.
    pub execution: Option<usize>,
    /// What is shown: of a task that runs the state of its execution.
    pub state: TaskState,
    /// What is seen of the key of its execution.
    pub key: KeyState,
    /// Seconds until it counts as an orphan, while its key is free for less than the grace.
    pub orphan_in: Option<f64>,
    /// How many of its last executions failed in a row.
    pub streak: Streak,
    /// The state of the schedule alone; none without one.
    pub schedule_state: Option<TaskState>,
    /// The lock on its key, where the key is known.
    pub tag: Option<LockTag>,
    /// The process that holds it; none also for a prepared transaction.
    pub holder: Option<i32>,
    /// Whether somebody holds the lock on its key.
    pub held: bool,
    /// The session that was seen to hold the key of its execution last, and has ended.
    pub last_holder: Option<BackendId>,
    /// How long a run may take, in seconds.
    pub limit: f64,
    /// Since when the key has been seen free (an orphan) or held for nothing (leaked).
    pub since: Option<Timestamp>,
}

impl TaskRow {
    /// The tables that it is of; none in another snapshot that lacks them.
    pub fn set<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a TaskSet> {
        snapshot.task_sets.get(self.set)
    }

    /// The row of the schedule; none for a key without a task.
    pub fn schedule<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Schedule> {
        self.set(snapshot)?.tasks.last_rows().get(self.schedule?)
    }

    /// Its last execution that failed, where none has completed since.
    pub fn last_failed<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Execution> {
        self.set(snapshot)?.executions.last_rows().get(self.streak.last?)
    }

    /// The row of the execution that runs; none where none does.
    pub fn execution<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Execution> {
        self.set(snapshot)?.executions.last_rows().get(self.execution?)
    }

    /// What the task is called: text of the server, not yet fit for a screen.
    pub fn name(&self, snapshot: &Snapshot) -> Text {
        let name = self.schedule(snapshot).and_then(|task| task.name.clone());
        name.unwrap_or_else(|| format!("task {}", self.task.id).into())
    }

    /// How long the execution has run, in seconds.
    pub fn age(&self, snapshot: &Snapshot) -> Option<f64> {
        let started_at = self.execution(snapshot)?.started_at?;
        Some((snapshot.taken_at - started_at).as_seconds_f64().max(0.0))
    }

    /// Seconds until it is due; less than none when it should have begun.
    pub fn due_in(&self, snapshot: &Snapshot) -> Option<f64> {
        let next = self.schedule(snapshot)?.next_run_at?;
        Some((next - snapshot.taken_at).as_seconds_f64())
    }
}

/// How many rows are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts([u32; TaskState::ALL.len()]);

impl Counts {
    /// How many rows are in a state.
    pub fn of(&self, state: TaskState) -> u32 {
        let place = TaskState::ALL.iter().position(|other| *other == state);
        place.and_then(|at| self.0.get(at)).copied().unwrap_or_default()
    }

    fn add(&mut self, state: TaskState) {
        let place = TaskState::ALL.iter().position(|other| *other == state);
        if let Some(count) = place.and_then(|at| self.0.get_mut(at)) {
            *count += 1;
        }
    }
}

/// Every task of a snapshot with its state, in the order of the tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Board {
    /// A row for each task, and for each further execution and leaked key, in the order of the tables.
    pub rows: Vec<TaskRow>,
    /// How many there are of each.
    pub counts: Counts,
}

impl Board {
    /// Counts the states of rows that are in their order.
    pub fn of(rows: Vec<TaskRow>) -> Self {
        let mut counts = Counts::default();
        for row in &rows {
            counts.add(row.state);
        }
        Self { rows, counts }
    }
}
