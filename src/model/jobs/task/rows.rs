pub use crate::model::table_rows::{Execution, Schedule};

use std::sync::Arc;

use locktop_base::namespace::{LARGEST_ID, TASKS};
use rustc_hash::FxHashMap;

use crate::model::Text;
use crate::model::judge::KeyProof;
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::LockName;
use crate::model::snapshot::Section;
use crate::model::table_rows::{Growth, Owner};
use crate::order::SortExt;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId {
    pub table: u32,
    pub id: i64,
}

/// Start of the error that locktop writes when it fails an execution in a published log: the session had ended, was
/// terminated for it, or worked on another execution.
pub(crate) const CLOSED: [&str; 3] = [
    "its worker's session had ended: failed by ",
    "its worker's session was terminated: failed by ",
    "its key was held for another execution: failed by ",
];

impl Execution {
    pub fn is_running(&self) -> bool {
        self.status.as_deref() == Some("running")
    }

    /// Whether it was closed because its worker's session had ended: not a failure of the task.
    pub fn is_recovered(&self) -> bool {
        let error = self.error.as_deref().unwrap_or_default();
        self.recovered_by.is_some() || CLOSED.iter().any(|words| error.starts_with(words))
    }

    /// Whether its worker released it unfinished at shutdown (`give_back_task`): neither a failure nor an attempt.
    pub fn is_released(&self) -> bool {
        self.error
            .as_deref()
            .is_some_and(|error| error.ends_with("which was shut down; it does not count as an attempt"))
    }
}

/// The lock of a task or a queue item: `task_key` and `queue_key` in `[tables]` of the config.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyRule {
    /// Not configured.
    #[default]
    Unsaid,
    Id,
    LockId,
    /// The result of this SQL expression over the row.
    Expression(Text),
}

impl KeyRule {
    /// Parses the config value: `id`, `lock_id` or an SQL expression.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" => Self::Unsaid,
            "id" => Self::Id,
            "lock_id" => Self::LockId,
            expression => Self::Expression(expression.into()),
        }
    }
}

rows! {
    as task_tables_rows;

    #[derive(Eq, Default)]
    pub struct TaskTables in TaskTableRows {
        /// OID of the table of schedules; 0 if there is none.
        1 table: u32,
        /// OID of the log; None if there is no log.
        2 log: Option<u32>,
        3 schedules: Text,
        /// The log as `schema.table`; None if there is no log.
        4 executions: Option<Text>,
        /// Whether the key of a task is in the namespace (locktop's own tables) and not its raw id.
        5 own_keys: bool,
        /// The lock of a task if `own_keys` is false.
        6 key_rule: KeyRule,
        /// A function in the schema of the tables takes advisory locks and names the table: as published, on the id of the row.
        7 has_function: bool,
        8 owner: Owner,
        /// Rows and bytes of the log, from the planner's statistics.
        9 growth: Growth,
    }
}

#[derive(Debug, Clone, Default)]
pub struct TaskSet {
    pub tables: Arc<TaskTables>,
    /// In the order of their ids.
    pub tasks: Section<Schedule>,
    /// The running executions, and the last few of each task, newest first; cut if more executions run than were read.
    pub executions: Section<Execution>,
    by_id: FxHashMap<i64, u32>,
    by_lock: FxHashMap<i64, i64>,
    /// The key stored by the newest execution of each task.
    last_locks: FxHashMap<i64, Option<i64>>,
}

impl TaskSet {
    pub fn new(tables: Arc<TaskTables>, tasks: Section<Schedule>, executions: Section<Execution>) -> Self {
        let places = (0u32..).zip(tasks.last_rows().iter());
        let by_id = places.map(|(at, task)| (task.id, at)).collect();
        let rows = executions.last_rows();
        let running = rows.iter().filter(|execution| execution.is_running());
        let mut newest: Vec<&Execution> = rows.iter().collect();
        newest.order_by_key(|execution| (execution.started_at, execution.id));
        let last_locks = newest.iter().map(|execution| (execution.task_id, execution.lock_id)).collect();
        let by_lock = running.filter_map(|execution| Some((execution.lock_id?, execution.task_id))).collect();
        Self { tables, tasks, executions, by_id, by_lock, last_locks }
    }

    pub fn place(&self, id: i64) -> Option<usize> {
        self.by_id.get(&id).map(|at| *at as usize)
    }

    pub fn task(&self, id: i64) -> Option<&Schedule> {
        self.tasks.last_rows().get(self.place(id)?)
    }

    /// The task with a running execution that stores this number as its key.
    pub fn running_with(&self, number: i64) -> Option<i64> {
        self.by_lock.get(&number).copied()
    }

    /// Whether the executions are from this poll and include all running ones.
    pub fn knows_running(&self) -> bool {
        self.executions.is_known() && !self.executions.is_cut
    }

    /// The key of an execution: by the config, else the stored number, else the key of its task in locktop's own tables or if
    /// a function locks it.
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

    /// The proof that the execution locks this number; None if it is a guess.
    pub fn proof(&self, execution: &Execution, key: TaskKey) -> Option<KeyProof> {
        if Some(key) == TaskKey::own(execution.task_id) {
            return Some(KeyProof::Namespace);
        }
        match self.tables.key_rule {
            _ if self.tables.own_keys => None,
            KeyRule::Unsaid if execution.lock_id == Some(execution.task_id) => Some(KeyProof::Row),
            KeyRule::Unsaid if execution.lock_id.is_none() && self.tables.has_function => {
                Some(KeyProof::Function)
            }
            KeyRule::Unsaid => None,
            KeyRule::Id | KeyRule::LockId | KeyRule::Expression(_) => Some(KeyProof::Config),
        }
    }

    /// The key of a task that does not run, with its proof. If the config does not define the key, the number stored by the
    /// newest execution is used.
    pub fn task_key(&self, task: &Schedule) -> Option<(TaskKey, Option<KeyProof>)> {
        let stored = self.last_locks.get(&task.id).copied().flatten();
        let by_config = |number: i64| (TaskKey::of(number), Some(KeyProof::Config));
        match &self.tables.key_rule {
            _ if self.tables.own_keys => Some((TaskKey::own(task.id)?, Some(KeyProof::Namespace))),
            KeyRule::Id => Some(by_config(task.id)),
            KeyRule::Expression(_) => task.key.map(by_config),
            KeyRule::LockId => stored.map(by_config),
            KeyRule::Unsaid => Some(match stored {
                Some(number) if number == task.id => (TaskKey::Raw(number), Some(KeyProof::Row)),
                Some(number) => (TaskKey::of(number), None),
                None => (TaskKey::Raw(task.id), self.tables.has_function.then_some(KeyProof::Function)),
            }),
        }
    }

    pub fn task_id(&self, id: i64) -> TaskId {
        TaskId { table: self.tables.table, id }
    }
}

/// Failures of a task since it last completed, within the executions that were read. Executions released by their worker
/// do not count: another worker takes the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Streak {
    /// Consecutive failed executions, newest first; 0 if the last one completed. Excludes executions closed by others after
    /// their session ended: the worker was stopped or killed.
    pub length: u32,
    /// The same, including those whose session ended: the number of attempts.
    pub attempts: u32,
    /// No older executions were read: the streak may be longer.
    pub is_open: bool,
    /// Index of the last failed execution in the set.
    pub last: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Streaks(FxHashMap<i64, Streak>);

impl Streaks {
    /// Relies on the executions being newest first.
    pub(super) fn of(set: &TaskSet) -> Self {
        let mut streaks: FxHashMap<i64, Streak> = FxHashMap::default();
        let over = set.executions.last_rows().iter().enumerate().filter(|(_, row)| !row.is_running());
        for (at, execution) in over {
            let is_failed = execution.status.as_deref() == Some("failed");
            let streak =
                streaks.entry(execution.task_id).or_insert(Streak { is_open: true, ..Streak::default() });
            if !streak.is_open || execution.is_released() {
                continue;
            }
            if is_failed {
                streak.length += u32::from(!execution.is_recovered());
                streak.attempts += 1;
                streak.last.get_or_insert(at);
            } else {
                streak.is_open = false;
            }
        }
        Self(streaks)
    }

    pub(super) fn of_task(&self, id: i64) -> Streak {
        self.0.get(&id).copied().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskKey {
    /// In locktop's namespace for tasks: no other program is likely to use such a number.
    Own(i64),
    /// Any other number, usually a row id. Any program may use it.
    Raw(i64),
}

impl TaskKey {
    /// Classifies a number stored as `lock_id` or held as a key.
    pub const fn of(number: i64) -> Self {
        if number >> 48 == TASKS as i64 { Self::Own(number & LARGEST_ID) } else { Self::Raw(number) }
    }

    /// The key of a task in locktop's own tables; None if the id does not fit.
    pub const fn own(id: i64) -> Option<Self> {
        if id >= 0 && id <= LARGEST_ID { Some(Self::Own(id)) } else { None }
    }

    /// The argument of `pg_advisory_lock(bigint)`.
    pub const fn number(self) -> i64 {
        match self {
            Self::Own(id) => (TASKS as i64) << 48 | (id & LARGEST_ID),
            Self::Raw(number) => number,
        }
    }

    pub const fn lock_key(self) -> LockKey {
        LockKey::Bigint(self.number())
    }

    pub fn tag(self, datid: u32) -> LockTag {
        let number = self.number().cast_unsigned();
        let half = |bits: u64| u32::try_from(bits & 0xffff_ffff).ok();
        LockTag::new(LockType::Advisory)
            .with_database(datid)
            .with_classid(half(number >> 32))
            .with_objid(half(number))
            .with_objsubid(1)
    }
}

/// The name of the task behind a bigint key of the database that the sets were read from. A key of the namespace is
/// certain if exactly one task has its id; a raw number may belong to any program, so its name is always a guess.
pub fn name_of(sets: &[TaskSet], number: i64) -> Option<LockName> {
    match TaskKey::of(number) {
        TaskKey::Own(id) => {
            let mut owners = sets.iter().filter(|set| set.tables.own_keys && set.place(id).is_some());
            let set = owners.next()?;
            let origin = format!("the key of task {id} in {}", set.tables.schedules);
            Some(named(set, id, owners.next().is_some(), &origin))
        }
        TaskKey::Raw(number) => {
            let running = sets.iter().find_map(|set| Some((set, set.running_with(number)?)));
            if let Some((set, id)) = running {
                let log = set.tables.executions.as_deref().unwrap_or_default();
                return Some(named(set, id, true, &format!("the lock_id of a running row of {log}")));
            }
            let set = sets.iter().find(|set| !set.tables.own_keys && set.place(number).is_some())?;
            let origin = format!("the same number as an id in {}", set.tables.schedules);
            Some(named(set, number, true, &origin))
        }
    }
}

/// Another table that has a task with the same key, if any: the holder may run that task instead.
pub fn also_of<'a>(sets: &'a [TaskSet], set: &TaskSet, key: TaskKey) -> Option<&'a Text> {
    let TaskKey::Own(id) = key else { return None };
    let is = |other: &&TaskSet| {
        other.tables.own_keys && other.tables.table != set.tables.table && other.place(id).is_some()
    };
    sets.iter().find(is).map(|other| &other.tables.schedules)
}

fn named(set: &TaskSet, id: i64, uncertain: bool, origin: &str) -> LockName {
    let name = set.task(id).and_then(|task| task.name.clone());
    let name = name.unwrap_or_else(|| format!("task {id}").into());
    LockName { name, uncertain, origin: origin.into() }
}
