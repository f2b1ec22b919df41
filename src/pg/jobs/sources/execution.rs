//! Scheduled tasks and their executions: `scheduled_tasks` and `task_execution_log`.
//!
//! A log only grows, so each part of it is read by an index: the running executions in every poll, the last ones of each
//! task in every few polls.

use rustc_hash::{FxHashMap, FxHashSet};

use super::reader::{ANY, INT, Needed, Reads, TEXT, TableSource, filled};
use crate::model::task::{Execution, Schedule};
use crate::model::{Text, Timestamp};
use crate::order::SortExt;
use crate::pg::jobs::tables::{Table, every};

const RUNNING_ONES: &str = include_str!("../../../../assets/sql/tasks_running.sql");
const LAST: &str = include_str!("../../../../assets/sql/tasks_last.sql");
const NEWEST_ONES: &str = include_str!("../../../../assets/sql/tasks_newest.sql");

/// Largest number of running executions that are read.
const RUNNING: usize = 1000;
/// Number of tasks whose last executions are read.
const LAST_OF: usize = 400;
/// Number of last executions per task.
const EACH: usize = 5;
/// Executions that are read if only the primary key can be used.
const NEWEST: usize = 1000;
/// Executions that a poll may read on average, in addition to the running ones.
const PER_POLL: usize = 501;

impl TableSource for Execution {
    const TABLE: &'static str = "task_execution_log";
    const MOST: usize = RUNNING;
    const LACKS: &'static str = "has no columns id, task_id and status: not a log of executions";
    const NEEDED: Needed = &[("id", INT), ("task_id", INT), ("status", TEXT)];
    const OWN: &'static [&'static str] = &["backend_pid", "backend_start", "lock_id"];

    fn query(log: &Table) -> Result<String, Text> {
        let newest = log.has_index(&["id"]).then(|| part(NEWEST_ONES, log, &[]));
        let parts: Vec<String> = Self::part(log).into_iter().chain(newest).collect();
        if parts.is_empty() {
            let name = log.label();
            return Err(format!(
                "{name} has no index on (status, started_at) nor on id, and is not read: it would be a sequential scan"
            )
            .into());
        }
        Ok(parts.join("\nUNION ALL\n"))
    }

    fn query_with(log: &Table, schedules: &Table) -> Option<String> {
        let running = Self::part(log)?;
        let by_task = log.kind("started_at").is_some() && log.has_index(&["task_id", "started_at"]);
        if !by_task || schedules.stranger.is_some() {
            return None;
        }
        let last_run_at = if schedules.kind("last_run_at").is_some() { "t.last_run_at" } else { "NULL" };
        let schedules = schedules.named().source();
        let last = part(LAST, log, &[("$table", &schedules), ("$last_run_at", last_run_at)]);
        Some(format!("{running}\nUNION ALL\n{last}"))
    }

    /// The query for the running executions; None if no index supports it.
    fn part(log: &Table) -> Option<String> {
        let has_index =
            log.kind("started_at").is_some() && log.index_where("status", "running", &[]).is_some();
        has_index.then(|| part(RUNNING_ONES, log, &[]))
    }

    fn stays(&self) -> bool {
        !self.is_running()
    }

    /// Each execution once, newest first, with only the last few of each task in addition to the running ones; and whether
    /// more may be running.
    fn tidy(mut rows: Vec<Self>, reads: Reads) -> (Vec<Self>, bool) {
        rows.order_by_key(|row| std::cmp::Reverse((row.started_at, row.id)));
        let mut seen = FxHashSet::default();
        let mut finished: FxHashMap<i64, usize> = FxHashMap::default();
        rows.retain(|row| {
            let count = finished.entry(row.task_id).or_default();
            *count += usize::from(!row.is_running());
            seen.insert(row.id) && (row.is_running() || *count <= EACH)
        });
        let has_more = match reads {
            Reads::Copy => false,
            Reads::Parts => rows.iter().filter(|row| row.is_running()).count() > RUNNING,
            Reads::Query => true,
        };
        (rows, has_more)
    }

    /// Zero if running executions can be read only together with all others: they are read in every poll.
    fn rest(rows: &[Self], reads: Reads) -> u32 {
        if reads == Reads::Parts { every(rows.len(), PER_POLL) } else { 0 }
    }
}

fn part(template: &str, log: &Table, values: &[(&str, &str)]) -> String {
    let (log_table, running, newest) = (log.named().source(), (RUNNING + 1).to_string(), NEWEST.to_string());
    let (schedules, tasks, each) = (Schedule::MOST.to_string(), LAST_OF.to_string(), EACH.to_string());
    let mut all = vec![("$log", log_table.as_str()), ("$running", &running), ("$newest", &newest)];
    all.extend([("$schedules", schedules.as_str()), ("$tasks", &tasks), ("$each", &each)]);
    all.extend(values);
    filled::<Execution>(template, log, &all)
}

const QUERY: &str = include_str!("../../../../assets/sql/tasks.sql");

/// Schedules that a poll may read on average: ten thousand are read in every eleventh poll.
const SCHEDULES_PER_POLL: usize = 1000;

impl TableSource for Schedule {
    const TABLE: &'static str = "scheduled_tasks";
    const MOST: usize = 10_000;
    const LACKS: &'static str = "has no columns id and task_name: not a table of tasks";
    const NEEDED: Needed = &[("id", INT), ("task_name", ANY)];
    const OWN: &'static [&'static str] = &["max_attempts"];
    const KEY_RULE: &'static str = "task_key";

    fn query(table: &Table) -> Result<String, Text> {
        Ok(filled::<Self>(QUERY, table, &[]))
    }

    fn choose(mut rows: Vec<Self>, _: Timestamp) -> Vec<Self> {
        rows.order_by_key(|row| row.id);
        rows
    }

    fn rest(rows: &[Self], _: Reads) -> u32 {
        every(rows.len(), SCHEDULES_PER_POLL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn running_ones_and_the_last_five_of_each_task_are_kept_once() {
        let row = |id: i64, task_id, status: &str| Execution {
            id,
            task_id,
            status: Some(status.into()),
            started_at: Timestamp::from_timestamp(id, 0),
            ..Execution::default()
        };
        let mut rows: Vec<Execution> = (10..20).map(|id| row(id, 1, "failed")).collect();
        rows.push(row(3, 1, "running"));
        rows.push(row(3, 1, "running"));
        rows.push(Execution { started_at: None, ..row(30, 2, "completed") });
        let (kept, has_more) = Execution::tidy(rows, Reads::Parts);
        assert_eq!(kept.iter().map(|row| row.id).collect::<Vec<_>>(), [19, 18, 17, 16, 15, 3, 30]);
        assert!(!has_more);
    }
}
