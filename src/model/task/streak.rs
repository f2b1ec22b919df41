use rustc_hash::FxHashMap;

use super::TaskSet;

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
