//! What has to be seen more than once: a key that stays free, and one that stays held for nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use super::evidence::{Holders, KeySeen, Keys, holders};
use super::state::{self, Evidence, KeyState};
use super::streak::{Streak, Streaks};
use super::watch::{Epoch, Held};
use super::{Board, Schedule, TaskKey, TaskRow, TaskSet, TaskState, Watch};
use crate::model::Timestamp;
use crate::model::backend::State;
use crate::model::snapshot::Snapshot;
use crate::model::thresholds::Thresholds;

impl Watch {
    /// Judges the tasks of the next snapshot, and remembers which keys are free or leaked in it.
    pub fn look(&mut self, snapshot: &Snapshot, thresholds: &Thresholds) -> Board {
        let epoch = snapshot.server().map(Epoch::of);
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::default() };
        }
        if snapshot.task_sets.is_empty() {
            self.free.clear();
            self.seen.clear();
            self.idle.clear();
            return Board::default();
        }
        let before = std::mem::take(self);
        self.epoch = before.epoch;
        let held = Held::of(snapshot);
        let mut look = BoardBuilder { before: &before, after: self, snapshot, thresholds, held };
        let leaked = look.leaked();
        let mut rows = Vec::new();
        for place in 0..snapshot.task_sets.len() {
            look.rows_of(place, &leaked, &mut rows);
        }
        Board::of(rows)
    }
}

/// Keys of the namespace that are held for nothing, by id: by whom, and since when.
type Leaked = FxHashMap<i64, (i32, Timestamp)>;

/// One set, and what is made of it once.
struct About<'a> {
    place: usize,
    set: &'a TaskSet,
    streaks: Streaks,
    holders: Holders,
}

struct BoardBuilder<'a> {
    before: &'a Watch,
    after: &'a mut Watch,
    snapshot: &'a Snapshot,
    thresholds: &'a Thresholds,
    held: Held,
}

impl BoardBuilder<'_> {
    fn standby(&self) -> bool {
        self.snapshot.server().is_none_or(|server| server.in_recovery)
    }

    /// Keys of the namespace without a running row, held at this look and the one before by sessions that are not in a
    /// transaction. All tables must have been read: a row that is not seen is not a row that is not there.
    fn leaked(&mut self) -> Leaked {
        let sets = &self.snapshot.task_sets;
        let own = || sets.iter().filter(|set| set.tables.own_keys);
        let readable = self.held.is_known && self.snapshot.backends.is_known();
        if self.standby() || !readable || own().next().is_none() || !own().all(TaskSet::knows_running) {
            return Leaked::default();
        }
        let keys = sets.iter().flat_map(|set| {
            let rows = set.executions.last_rows().iter().filter(|execution| execution.is_running());
            rows.filter_map(|execution| set.key(execution))
        });
        let running: FxHashSet<TaskKey> = keys.collect();
        let mut leaked = Leaked::default();
        for (number, holder) in &self.held.holders {
            let key = TaskKey::of(*number);
            let (TaskKey::Own(id), Some(pid)) = (key, *holder) else { continue };
            if running.contains(&key) {
                continue;
            }
            let backend = self.snapshot.backend(pid);
            let idle = backend.is_some_and(|row| row.state == Some(State::Idle) && row.xact_start.is_none());
            if !idle {
                continue;
            }
            let known = self.before.idle.get(&(pid, *number)).copied();
            self.after.idle.insert((pid, *number), known.unwrap_or(self.snapshot.taken_at));
            if let Some(since) = known {
                leaked.insert(id, (pid, since));
            }
        }
        leaked
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
            executions.sort_by_key(|at| std::cmp::Reverse(id(at)));
        }
        let about = About {
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
        strangers.sort_by_key(|(id, _)| *id);
        for (id, executions) in strangers {
            self.executions(&about, (None, id), &executions, rows);
        }
        let first_own = snapshot.task_sets.iter().position(|set| set.tables.own_keys);
        if first_own == Some(place) {
            self.keys_without_task(place, set, leaked, rows);
        }
    }

    /// The rows of a task that runs in the log.
    fn executions(
        &mut self,
        about: &About<'_>,
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
            let holder = key.and_then(|key| self.held.holders.get(&key.number())).copied();
            let (state, seen) = self.judge(about, *at, limit);
            let grace = self.snapshot.grace(set.tables.own_keys, self.thresholds);
            let orphan_in = match seen.key {
                KeyState::Free { seconds, .. } if state == TaskState::Settling => Some(grace - seconds),
                _ => None,
            };
            rows.push(TaskRow {
                task: set.task_id(id),
                again: (number > 0).then_some(execution.id),
                set: about.place,
                schedule,
                execution: Some(*at),
                state,
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
            });
        }
    }

    /// As of when the schedules were read: since then it may have begun.
    fn state_of(&self, set: &TaskSet, task: &Schedule, last: (bool, bool)) -> TaskState {
        let at = set.tasks.taken_at.unwrap_or(self.snapshot.taken_at);
        state::of_schedule(task, last, at, self.thresholds.task_overdue)
    }

    /// The state of an execution, and what is seen of its key.
    fn judge(&mut self, about: &About<'_>, at: usize, limit: f64) -> (TaskState, KeySeen) {
        let (now, standby) = (self.snapshot.taken_at, self.standby());
        let mut keys = Keys {
            before: self.before,
            after: &mut *self.after,
            snapshot: self.snapshot,
            held: &self.held,
            set: about.set,
            holders: &about.holders,
        };
        let Some(execution) = about.set.executions.last_rows().get(at) else {
            return (TaskState::Unknown, KeySeen::of(KeyState::Unseen));
        };
        let seen = keys.of(execution);
        let grace = self.snapshot.grace(about.set.tables.own_keys, self.thresholds);
        let age = execution.started_at.map(|at| (now - at).as_seconds_f64());
        (state::of_execution(&Evidence { standby, key: seen.key, age, limit, grace }), seen)
    }

    /// The row of a task that does not run in the log.
    fn schedule(&self, about: &About<'_>, at: usize, task: &Schedule, leaked: &Leaked) -> TaskRow {
        let set = about.set;
        let streak = about.streaks.of_task(task.id);
        let own = set.tables.own_keys;
        let key = if own { TaskKey::own(task.id) } else { Some(TaskKey::Raw(task.id)) };
        let holder = key.and_then(|key| self.held.holders.get(&key.number())).copied();
        let leak = leaked.get(&task.id).filter(|_| own);
        let schedule_state = self.state_of(set, task, (false, streak.last.is_some()));
        // With a number of its own nothing else is locked; another number says so only of a task that is due.
        let is_due = matches!(schedule_state, TaskState::Due | TaskState::Overdue);
        let works = (own || is_due) && holder.flatten().is_some_and(|pid| self.is_in_transaction(pid));
        let is_certain = own || set.tables.has_function;
        let state = match leak {
            Some(_) => TaskState::Leaked,
            None if works && is_certain => TaskState::Uncommitted,
            None if works => TaskState::MaybeUncommitted,
            None => schedule_state,
        };
        TaskRow {
            task: set.task_id(task.id),
            again: None,
            set: about.place,
            schedule: Some(at),
            execution: None,
            state,
            key: KeyState::Unseen,
            orphan_in: None,
            streak,
            schedule_state: Some(schedule_state),
            tag: key.map(|key| key.tag(self.held.datid)),
            // Who holds a raw number may do so for any reason.
            holder: holder.flatten().filter(|_| own || works),
            held: (own || works) && holder.is_some(),
            last_holder: None,
            limit: task.timeout.unwrap_or(self.thresholds.task_timeout),
            since: leak.map(|(_, since)| *since),
        }
    }

    fn is_in_transaction(&self, pid: i32) -> bool {
        let is_known = self.snapshot.backends.is_known() && self.held.is_known && !self.standby();
        is_known && self.snapshot.backend(pid).is_some_and(|backend| backend.xact_start.is_some())
    }

    /// Keys of the namespace that are held for nothing, and whose id is that of no task.
    fn keys_without_task(&self, place: usize, set: &TaskSet, leaked: &Leaked, rows: &mut Vec<TaskRow>) {
        let is_known = |id: i64| {
            self.snapshot.task_sets.iter().any(|set| set.tables.own_keys && set.place(id).is_some())
        };
        let mut strangers: Vec<_> = leaked.iter().filter(|(id, _)| !is_known(**id)).collect();
        strangers.sort_unstable();
        rows.extend(strangers.into_iter().map(|(id, (pid, since))| TaskRow {
            task: set.task_id(*id),
            again: None,
            set: place,
            schedule: None,
            execution: None,
            state: TaskState::Leaked,
            key: KeyState::Unseen,
            orphan_in: None,
            streak: Streak::default(),
            schedule_state: None,
            tag: Some(TaskKey::Own(*id).tag(self.held.datid)),
            holder: Some(*pid),
            held: true,
            last_holder: None,
            limit: self.thresholds.task_timeout,
            since: Some(*since),
        }));
    }
}
