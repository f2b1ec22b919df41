//! The rows of the task tables, as they were read.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Proof, TaskKey};
use crate::model::growth::Growth;
use crate::model::owner::Owner;
use crate::model::snapshot::Section;
use crate::model::{Text, Timestamp};

/// What identifies a task: the table it is in, and its id there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    /// OID of the table of schedules.
    pub table: u32,
    /// `id` of its row there.
    pub id: i64,
}

/// A row of `scheduled_tasks`: what is started when.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schedule {
    /// The primary key of the row (`id`).
    pub id: i64,
    /// `task_name`: what people call it.
    pub name: Option<Text>,
    /// `task_type`: which workers take it.
    pub kind: Option<Text>,
    /// `schedule_cron`: when it is due again, as a line of cron.
    pub cron: Option<Text>,
    /// `is_enabled`; NULL there counts as false, since no worker takes such a task. None without the column.
    pub enabled: Option<bool>,
    /// When its last execution began (`last_run_at`).
    pub last_run_at: Option<Timestamp>,
    /// When it is due (`next_run_at`).
    pub next_run_at: Option<Timestamp>,
    /// The higher, the sooner it is taken.
    pub priority: Option<i64>,
    /// How long a run may take, in seconds.
    pub timeout: Option<f64>,
    /// Attempts after which it is given up.
    pub max_attempts: Option<i64>,
    /// Attempts that failed since it last completed.
    pub attempts: Option<i64>,
    /// The key of its executions by the config's expression.
    pub key: Option<i64>,
}

/// A row of `task_execution_log`: one run of a task.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Execution {
    /// The primary key of the row (`id`).
    pub id: i64,
    /// The task that it is a run of (`task_id`).
    pub task_id: i64,
    /// Who runs or ran it (`worker_id`), as it calls itself.
    pub worker: Option<Text>,
    /// `running`, `completed`, `failed`, or whatever stands there.
    pub status: Option<Text>,
    /// When the run began (`started_at`).
    pub started_at: Option<Timestamp>,
    /// When the run ended (`completed_at`); none while it runs.
    pub completed_at: Option<Timestamp>,
    /// What went wrong; cut at 500 characters.
    pub error: Option<Text>,
    /// The key that its session holds meanwhile.
    pub lock_id: Option<i64>,
    /// Process id of that session; none where the log has no such column.
    pub backend_pid: Option<i32>,
    /// `backend_start` of that session; none where the log has no such column.
    pub backend_start: Option<Timestamp>,
    /// Which attempt this is; none where the log has no such column.
    pub attempt: Option<i64>,
    /// The worker's last sign of life.
    pub heartbeat_at: Option<Timestamp>,
    /// Who closed the row for a worker that was gone; none where its worker did.
    pub recovered_by: Option<Text>,
}

/// How the error of an execution begins that locktop failed in a published log: its session had ended, was terminated for it, or worked on
/// another execution.
pub(crate) const CLOSED: [&str; 3] = [
    "its worker's session had ended: failed by ",
    "its worker's session was terminated: failed by ",
    "its key was held for another execution: failed by ",
];

impl Execution {
    /// Whether the log says that it runs.
    pub fn is_running(&self) -> bool {
        self.status.as_deref() == Some("running")
    }

    /// Whether it was closed for a worker whose session had ended: not a failure of the task.
    pub fn is_recovered(&self) -> bool {
        let error = self.error.as_deref().unwrap_or_default();
        self.recovered_by.is_some() || CLOSED.iter().any(|words| error.starts_with(words))
    }

    /// Whether its worker released it unfinished when that was shut down (`give_back_task`): not a failure, and not an attempt.
    pub fn is_released(&self) -> bool {
        self.error
            .as_deref()
            .is_some_and(|error| error.ends_with("which was shut down; it does not count as an attempt"))
    }
}

/// What is locked for a task, or an item of the queue: `task_key` and `queue_key` of the config's `[tables]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyRule {
    /// The config does not say what is locked.
    #[default]
    Unsaid,
    /// The `id` of the row.
    Id,
    /// The number in its column `lock_id`.
    LockId,
    /// What this SQL expression over the row gives.
    Expression(Text),
}

impl KeyRule {
    /// As the config has it: `id`, `lock_id` or an SQL expression.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" => Self::Unsaid,
            "id" => Self::Id,
            "lock_id" => Self::LockId,
            expression => Self::Expression(expression.into()),
        }
    }
}

/// A table of schedules and the log beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskTables {
    /// OID of the table of schedules; 0 where there is none.
    pub table: u32,
    /// OID of the log; none where there is no log.
    pub log: Option<u32>,
    /// The table of schedules by name.
    pub schedules: Text,
    /// The log as `schema.table`; none where there is no log.
    pub executions: Option<Text>,
    /// Whether a task is locked by a key of its own namespace (locktop's own tables), not by its raw id.
    pub own_keys: bool,
    /// What is locked for a task, where `own_keys` does not say it.
    pub key_rule: KeyRule,
    /// A function in the schema of the tables takes advisory locks and names the table: as published, on the id of the row.
    pub has_function: bool,
    /// Whose the table of schedules is.
    pub owner: Owner,
    /// Rows and bytes of the log, by the planner's statistics.
    pub growth: Growth,
}

/// A pair of tables and what was read of them.
#[derive(Debug, Clone, Default)]
pub struct TaskSet {
    /// The tables that the rows are from.
    pub tables: Arc<TaskTables>,
    /// The schedules that were read, in the order of their ids.
    pub tasks: Section<Schedule>,
    /// The running executions, and the last few of each task, newest first.
    pub executions: Section<Execution>,
    /// There are more schedules than were read.
    pub tasks_cut: bool,
    /// There are more running executions than were read.
    pub running_cut: bool,
    by_id: FxHashMap<i64, u32>,
    by_lock: FxHashMap<i64, i64>,
    /// The key that the newest execution of each task has stored.
    last_locks: FxHashMap<i64, Option<i64>>,
}

impl TaskSet {
    /// Puts what was read of two tables together; nothing is cut yet.
    pub fn new(tables: Arc<TaskTables>, tasks: Section<Schedule>, executions: Section<Execution>) -> Self {
        let places = (0u32..).zip(tasks.last_rows().iter());
        let by_id = places.map(|(at, task)| (task.id, at)).collect();
        let rows = executions.last_rows();
        let running = rows.iter().filter(|execution| execution.is_running());
        let mut newest: Vec<&Execution> = rows.iter().collect();
        newest.sort_by_key(|execution| (execution.started_at, execution.id));
        let last_locks = newest.iter().map(|execution| (execution.task_id, execution.lock_id)).collect();
        let by_lock = running.filter_map(|execution| Some((execution.lock_id?, execution.task_id))).collect();
        Self { tables, tasks, executions, by_id, by_lock, last_locks, ..Self::default() }
    }

    /// Notes that there are more schedules, or more running executions, than were read.
    pub fn cut(self, tasks_cut: bool, running_cut: bool) -> Self {
        Self { tasks_cut, running_cut, ..self }
    }

    /// Where the schedule with this id is among the rows.
    pub fn place(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).map(|at| *at as usize)
    }

    /// The schedule with this id; none where it was not read.
    pub fn task(&self, id: i64) -> Option<&Schedule> {
        self.tasks.last_rows().get(self.place(id)?)
    }

    /// The task whose running execution has stored this number as its key.
    pub fn running_with(&self, number: i64) -> Option<i64> {
        self.by_lock.get(&number).copied()
    }

    /// Whether the executions are of this poll, and all that run are among them.
    pub fn knows_running(&self) -> bool {
        self.executions.is_known() && !self.running_cut
    }

    /// The key of an execution: as the config says, else the one that is stored, else that of its task where something locks it.
    pub fn key(&self, execution: &Execution) -> Option<TaskKey> {
        let stored = execution.lock_id.map(TaskKey::of);
        match &self.tables.key_rule {
            _ if self.tables.own_keys => stored.or_else(|| TaskKey::own(execution.task_id)),
            KeyRule::Id => Some(TaskKey::of(execution.task_id)),
            KeyRule::Expression(_) => self.task(execution.task_id)?.key.map(TaskKey::of),
            KeyRule::Unsaid if self.tables.has_function => stored.or(Some(TaskKey::Raw(execution.task_id))),
            KeyRule::Unsaid | KeyRule::LockId => stored,
        }
    }

    /// What proves that this number is what the execution locks; none where that is a guess.
    pub fn proof(&self, execution: &Execution, key: TaskKey) -> Option<Proof> {
        if Some(key) == TaskKey::own(execution.task_id) {
            return Some(Proof::Namespace);
        }
        match self.tables.key_rule {
            _ if self.tables.own_keys => None,
            KeyRule::Unsaid if execution.lock_id == Some(execution.task_id) => Some(Proof::Row),
            KeyRule::Unsaid if execution.lock_id.is_none() && self.tables.has_function => {
                Some(Proof::Function)
            }
            KeyRule::Unsaid => None,
            KeyRule::Id | KeyRule::LockId | KeyRule::Expression(_) => Some(Proof::Config),
        }
    }

    /// The key of a task that does not run, and what proves that it is; by what its newest execution stored, if the config does not say it.
    pub fn task_key(&self, task: &Schedule) -> Option<(TaskKey, Option<Proof>)> {
        let stored = self.last_locks.get(&task.id).copied().flatten();
        let by_config = |number: i64| (TaskKey::of(number), Some(Proof::Config));
        match &self.tables.key_rule {
            _ if self.tables.own_keys => Some((TaskKey::own(task.id)?, Some(Proof::Namespace))),
            KeyRule::Id => Some(by_config(task.id)),
            KeyRule::Expression(_) => task.key.map(by_config),
            KeyRule::LockId => stored.map(by_config),
            KeyRule::Unsaid => Some(match stored {
                Some(number) if number == task.id => (TaskKey::Raw(number), Some(Proof::Row)),
                Some(number) => (TaskKey::of(number), None),
                None => (TaskKey::Raw(task.id), self.tables.has_function.then_some(Proof::Function)),
            }),
        }
    }

    /// The identity of a task of this set.
    pub fn task_id(&self, id: i64) -> TaskId {
        TaskId { table: self.tables.table, id }
    }
}
