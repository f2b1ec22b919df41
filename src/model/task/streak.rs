//! Executions of a task that failed in a row.

use rustc_hash::FxHashMap;

use super::TaskSet;

/// How often a task has failed since it last completed, as far as its last executions go. Executions that their worker released count in
/// nothing: another worker takes the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Streak {
    /// Executions that failed, the newest first, before one that did not; 0 where the last one completed. One whose session ended, so
    /// that others closed it, is not among them: its worker was stopped or killed.
    pub length: u32,
    /// The same with those whose session ended: how many attempts have been made.
    pub attempts: u32,
    /// Nothing older was read: it may be longer.
    pub is_open: bool,
    /// Index in the set's executions, of the last one that failed.
    pub last: Option<usize>,
}

/// Those of every task of a set.
#[derive(Debug, Default)]
pub(super) struct Streaks(FxHashMap<i64, Streak>);

impl Streaks {
    /// Reads the executions that are over, which come newest first.
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

    /// How often one task has failed in a row; 0 where nothing of it was read.
    pub(super) fn of_task(&self, id: i64) -> Streak {
        self.0.get(&id).copied().unwrap_or_default()
    }
}
