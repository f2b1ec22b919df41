//! Tracks what takes more than one snapshot to see: a key that stays free, and a key that stays held without a running
//! task.

use rustc_hash::{FxHashMap, FxHashSet};

use super::board::of_schedule;
use super::evidence::{Holders, KeyEvidence, KeySeen, holders};
use super::rows::Streaks;
use super::{Execution, JobState, Schedule, TaskBoard, TaskId, TaskKey, TaskRow, TaskSet, TaskWatch};
use crate::model::Timestamp;
use crate::model::adapter::{Evidence, Job};
use crate::model::backend::State;
use crate::model::judge::{Facts, KeyProof, judge_run};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::{Server, Snapshot, WorkLocks};
use crate::model::thresholds::Thresholds;
use crate::model::work_queue::Item;
use crate::order::SortExt;

impl TaskWatch {
    /// Evaluates the tasks of the next snapshot, and remembers its free and leaked keys.
    pub fn evaluate(&mut self, snapshot: &Snapshot, thresholds: &Thresholds) -> TaskBoard {
        let epoch = snapshot.server().map(Server::epoch);
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::default() };
        }
        if snapshot.task_sets.is_empty() {
            self.free.clear();
            self.seen.clear();
            self.idle.clear();
            return TaskBoard::default();
        }
        let before = std::mem::take(self);
        self.epoch = before.epoch;
        let held = WorkLocks::of(snapshot);
        let mut builder = TaskBoardBuilder { before: &before, after: self, snapshot, thresholds, held };
        let leaked = builder.leaked();
        let mut rows = Vec::new();
        for place in 0..snapshot.task_sets.len() {
            builder.rows_of(place, &leaked, &mut rows);
        }
        TaskBoard { rows }
    }
}

/// Keys held without a running task: process ID of the holder, and since when.
type Leaked = FxHashMap<i64, (i32, Timestamp)>;

struct TaskSetContext<'a> {
    place: usize,
    set: &'a TaskSet,
    streaks: Streaks,
    holders: Holders,
}

struct TaskBoardBuilder<'a> {
    before: &'a TaskWatch,
    after: &'a mut TaskWatch,
    snapshot: &'a Snapshot,
    thresholds: &'a Thresholds,
    held: WorkLocks,
}

impl TaskBoardBuilder<'_> {
    /// Keys of tasks without a running row, held in this snapshot and the previous one by sessions that are not in a
    /// transaction. All tables must have been read: an unread row may be a running one.
    fn leaked(&mut self) -> Leaked {
        let sets = &self.snapshot.task_sets;
        let all_known = |own: bool| {
            let mut of = sets.iter().filter(|set| set.tables.own_keys == own).peekable();
            self.held.shows_sessions && of.peek().is_some() && of.all(TaskSet::knows_running)
        };
        let mut queues = self.snapshot.sources.items.iter();
        let knows_raw = all_known(false) && queues.all(|table| table.section.is_known());
        let knows_own = all_known(true);
        if !knows_own && !knows_raw {
            return Leaked::default();
        }
        let keys = sets.iter().flat_map(|set| {
            let rows = set.executions.last_rows().iter().filter(|execution| execution.is_running());
            rows.filter_map(|execution| set.key(execution))
        });
        let running: FxHashSet<TaskKey> = keys.collect();
        let proved = if knows_raw { self.proved() } else { FxHashSet::default() };
        let mut leaked = Leaked::default();
        let held = &self.held;
        let idle: Vec<(i64, i32)> = held
            .holders
            .iter()
            .filter_map(|(key, holder)| match key {
                LockKey::Bigint(number) => Some((*number, (*holder)?)),
                LockKey::Pair(..) => None,
            })
            .filter(|(number, pid)| {
                let key = TaskKey::of(*number);
                let is_task = match key {
                    TaskKey::Own(_) => knows_own,
                    TaskKey::Raw(number) => proved.contains(&number) && self.queue_of(number).is_none(),
                };
                is_task && !running.contains(&key) && self.is_idle(*pid)
            })
            .collect();
        for (number, pid) in idle {
            let known = self.before.idle.get(&(pid, number)).copied();
            self.after.idle.insert((pid, number), known.unwrap_or(self.snapshot.taken_at));
            if let Some(since) = known {
                leaked.insert(number, (pid, since));
            }
        }
        leaked
    }

    /// The numbers proved to be keys of tasks in tables without locktop's own keys.
    fn proved(&self) -> FxHashSet<i64> {
        let raw = self.snapshot.task_sets.iter().filter(|set| !set.tables.own_keys);
        let keys = raw.flat_map(|set| set.tasks.last_rows().iter().filter_map(|task| set.task_key(task)));
        keys.filter(|(_, proof)| proof.is_some()).map(|(key, _)| key.number()).collect()
    }

    /// The work queue that has an unfinished item with this number.
    fn queue_of(&self, number: i64) -> Option<u32> {
        let mut queues = self.snapshot.sources.items.iter().filter(|table| !table.source.own_keys);
        let is = |item: &Item| !item.is_over() && item.key.unwrap_or(item.id) == number;
        let queue = queues.find(|table| table.section.last_rows().iter().any(is))?;
        Some(queue.source.table)
    }

    fn is_idle(&self, pid: i32) -> bool {
        let backend = self.snapshot.backend(pid);
        backend.is_some_and(|row| row.state == Some(State::Idle) && row.xact_start.is_none())
    }

    fn rows_of(&mut self, place: usize, leaked: &Leaked, rows: &mut Vec<TaskRow>) {
        let snapshot = self.snapshot;
        let Some(set) = snapshot.task_sets.get(place) else { return };
        let mut running: FxHashMap<i64, Vec<usize>> = FxHashMap::default();
        for (at, execution) in
            set.executions.last_rows().iter().enumerate().filter(|(_, row)| row.is_running())
        {
            running.entry(execution.task_id).or_default().push(at);
        }
        for executions in running.values_mut() {
            let id = |at: &usize| set.executions.last_rows().get(*at).map(|execution| execution.id);
            executions.order_by_key(|at| std::cmp::Reverse(id(at)));
        }
        let about = TaskSetContext {
            place,
            set,
            streaks: Streaks::of(set),
            holders: holders(self.before, snapshot, &self.held, set),
        };
        for (at, task) in set.tasks.last_rows().iter().enumerate() {
            match running.remove(&task.id) {
                Some(executions) => self.executions(&about, (Some(at), task.id), &executions, rows),
                None => rows.push(self.schedule(&about, at, task, leaked)),
            }
        }
        let mut strangers: Vec<_> = running.into_iter().collect();
        strangers.order_by_key(|(id, _)| *id);
        for (id, executions) in strangers {
            self.executions(&about, (None, id), &executions, rows);
        }
        let first_own = snapshot.task_sets.iter().position(|set| set.tables.own_keys);
        if first_own == Some(place) {
            self.keys_without_task(place, set, leaked, rows);
        }
    }

    fn executions(
        &mut self,
        about: &TaskSetContext<'_>,
        (schedule, id): (Option<usize>, i64),
        executions: &[usize],
        rows: &mut Vec<TaskRow>,
    ) {
        let set = about.set;
        let task = schedule.and_then(|at| set.tasks.last_rows().get(at));
        let limit = task.and_then(|task| task.timeout).unwrap_or(self.thresholds.task_timeout);
        let streak = about.streaks.of_task(id);
        for (number, at) in executions.iter().enumerate() {
            let Some(execution) = set.executions.last_rows().get(*at) else { continue };
            let key = set.key(execution);
            let holder = key.and_then(|key| self.held.holders.get(&key.lock_key())).copied();
            let (state, seen, orphan_in) = self.judge(about, execution, limit);
            rows.push(TaskRow {
                again: (number > 0).then_some(execution.id),
                schedule,
                execution: Some(*at),
                key: seen.key,
                orphan_in,
                schedule_state: task.map(|task| self.state_of(set, task, (true, false))),
                streak,
                tag: key.map(|key| key.tag(self.held.datid)),
                holder: holder.flatten(),
                held: holder.is_some(),
                last_holder: seen.ended,
                limit,
                since: seen.since,
                ..self.row(about.place, set.task_id(id), state)
            });
        }
    }

    /// A row without a schedule, an execution and a key.
    fn row(&self, set: usize, task: TaskId, state: JobState) -> TaskRow {
        TaskRow { task, set, state, limit: self.thresholds.task_timeout, ..TaskRow::default() }
    }

    /// Evaluated at the time the schedules were read, since the task may have begun after that.
    fn state_of(&self, set: &TaskSet, task: &Schedule, last: (bool, bool)) -> JobState {
        let at = set.tasks.taken_at.unwrap_or(self.snapshot.taken_at);
        of_schedule(task, last, at, self.thresholds.task_overdue)
    }

    /// The state of a running execution, and the seconds until it counts as an orphan.
    fn judge(
        &mut self,
        about: &TaskSetContext<'_>,
        execution: &Execution,
        limit: f64,
    ) -> (JobState, KeySeen, Option<f64>) {
        let mut keys = KeyEvidence {
            before: self.before,
            after: &mut *self.after,
            snapshot: self.snapshot,
            held: &self.held,
            set: about.set,
            holders: &about.holders,
        };
        let seen = keys.of(execution);
        let grace = self.snapshot.grace(about.set.tables.own_keys, self.thresholds);
        let facts = Facts { key: seen.key, grace, ..Facts::of(self.snapshot) };
        let job = Job { started_at: execution.started_at, limit: Some(limit), ..Job::default() };
        let judged = judge_run(&Evidence { has_key: true, ..Evidence::default() }, &job, &facts);
        let since = judged.since.filter(|_| judged.is_undecided());
        let orphan_in = since.map(|since| grace - (self.snapshot.taken_at - since).as_seconds_f64());
        (judged.shown(JobState::Settling), seen, orphan_in)
    }

    fn schedule(&self, about: &TaskSetContext<'_>, at: usize, task: &Schedule, leaked: &Leaked) -> TaskRow {
        let set = about.set;
        let streak = about.streaks.of_task(task.id);
        let (key, proof) = set.task_key(task).unzip();
        let proof = proof.flatten();
        let holder = key.and_then(|key| self.held.holders.get(&key.lock_key())).copied();
        let leak = key.filter(|_| proof.is_some()).and_then(|key| leaked.get(&key.number()));
        let schedule_state = self.state_of(set, task, (false, streak.last.is_some()));
        let works = key.zip(holder.flatten()).and_then(|(key, pid)| {
            self.uncommitted(
                set,
                (key, proof),
                pid,
                matches!(schedule_state, JobState::Due | JobState::Overdue),
            )
        });
        let state = match leak {
            Some(_) => JobState::Leaked,
            None => works.unwrap_or(schedule_state),
        };
        // A session can hold a raw number for any reason.
        let is_for_it = set.tables.own_keys || works.is_some() || leak.is_some();
        TaskRow {
            schedule: Some(at),
            streak,
            schedule_state: Some(schedule_state),
            tag: key.map(|key| key.tag(self.held.datid)),
            holder: holder.flatten().filter(|_| is_for_it),
            held: is_for_it && holder.is_some(),
            limit: task.timeout.unwrap_or(self.thresholds.task_timeout),
            since: leak.map(|(_, since)| *since),
            ..self.row(about.place, set.task_id(task.id), state)
        }
    }

    /// Whether the session that holds the key of a task works on it in an open transaction. In locktop's own tables nothing
    /// else uses the key. A raw number counts only for a due task; it is certain only if it is proved to be the key and, if a
    /// queue item has the same number, the transaction has written to the log.
    fn uncommitted(
        &self,
        set: &TaskSet,
        (key, proof): (TaskKey, Option<KeyProof>),
        pid: i32,
        is_due: bool,
    ) -> Option<JobState> {
        if !self.held.is_in_transaction(self.snapshot, pid) {
            return None;
        }
        if set.tables.own_keys {
            return Some(JobState::Uncommitted);
        }
        let logs = set.tables.log.is_some_and(|log| self.held.writes(pid, log));
        let queue = self.queue_of(key.number()).filter(|_| !logs);
        match queue {
            _ if !is_due => None,
            Some(queue) if self.held.writes(pid, queue) => None,
            None if proof.is_some() => Some(JobState::Uncommitted),
            _ => Some(JobState::MaybeUncommitted),
        }
    }

    /// Adds leaked keys of the namespace whose id is that of no task.
    fn keys_without_task(&self, place: usize, set: &TaskSet, leaked: &Leaked, rows: &mut Vec<TaskRow>) {
        let is_known = |id: i64| {
            self.snapshot.task_sets.iter().any(|set| set.tables.own_keys && set.place(id).is_some())
        };
        let own = leaked.iter().filter_map(|(number, leak)| match TaskKey::of(*number) {
            TaskKey::Own(id) if !is_known(id) => Some((id, leak)),
            _ => None,
        });
        let mut strangers: Vec<_> = own.collect();
        strangers.sort_unstable();
        rows.extend(strangers.into_iter().map(|(id, (pid, since))| TaskRow {
            tag: Some(TaskKey::Own(id).tag(self.held.datid)),
            holder: Some(*pid),
            held: true,
            since: Some(*since),
            ..self.row(place, set.task_id(id), JobState::Leaked)
        }));
    }
}
