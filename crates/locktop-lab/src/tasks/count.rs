//! The numbers of the tasks, and what must not be.

use tokio_postgres::{Client, Error};

use super::tables::TaskTables;
use super::witness::WitnessLog;
use crate::contest::{ContestOutcome, Runner, Tally, count, numbers, tally};

/// What the tasks are called among the contests.
pub(super) const NAME: &str = "tasks";

tally! {
    // Places for workers, and tasks in the table.
    workers tasks
    // Rows of the log; those that ended well; those that failed, the recovered ones included.
    executions completed failed
    // Those that were closed in their worker's place, by a recovery or by the worker that got the task next.
    recovered
    // Pairs of runs of one task that were at work at the same time, as they witnessed themselves.
    double_runs
    // Pairs that met only in what a stopped worker did when it woke and had not looked yet: at most one sign, and its end.
    woken_runs
    // Runs that were witnessed.
    runs
    // Those that had lost their task when they came to an end: the server refused their finish, or counted it all the same.
    finishes_refused finishes_accepted
    // Executions that were closed in their worker's place more than once.
    recovered_twice
    // Of the recovered ones those that the next worker closed.
    superseded
    // Executions that the log still had as running when it was read.
    running
    // Workers killed with SIGKILL in mid-task.
    kills
    // Workers stopped with SIGSTOP in mid-task, and woken with SIGCONT; of these those whose execution was recovered while they stood still.
    stops overslept
    // Sessions with a task's lock that were ended while the worker went on.
    cuts
    // Worker processes started, and those that ended without being told to.
    processes lost_workers
}

/// What the log, the audit and the witnesses say of so many workers and tasks.
pub(super) async fn found(
    client: &Client,
    tables: &TaskTables,
    runner: &Runner,
    (workers, tasks): (usize, usize),
) -> Result<ContestOutcome, Error> {
    let schema = tables.schema.quoted();
    let closed =
        if tables.recipe { "error_message LIKE 'Task timeout%'" } else { "recovered_by IS NOT NULL" };
    let log = format!(
        "SELECT count(*), count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'failed'),
                count(*) FILTER (WHERE status = 'running'), count(*) FILTER (WHERE {closed})
           FROM {schema}.task_execution_log"
    );
    let audit = format!(
        "SELECT count(*) FILTER (WHERE times > 1), count(*) FILTER (WHERE superseded)
           FROM (SELECT count(*) AS times, bool_or(action = 'superseded') AS superseded
                   FROM {schema}.locktop_audit
                  WHERE action IN ('recovered', 'gave_up', 'superseded') AND execution_id IS NOT NULL
                  GROUP BY execution_id) q"
    );
    let record = runner.record();
    let mut found = Numbers { workers: count(workers), tasks: count(tasks), ..Numbers::default() };
    [found.executions, found.completed, found.failed, found.running, found.recovered] =
        numbers(client, &log).await?;
    if !tables.recipe {
        [found.recovered_twice, found.superseded] = numbers(client, &audit).await?;
    }
    let counts = WitnessLog::read(client).await?.counts(&record.pauses);
    (found.runs, found.double_runs, found.woken_runs) = (counts.runs, counts.double_runs, counts.woken_runs);
    (found.finishes_refused, found.finishes_accepted) = (counts.finishes_refused, counts.finishes_accepted);
    (found.kills, found.stops, found.overslept, found.cuts) =
        (record.kills, count(record.pauses.len()), record.overslept, record.cuts);
    (found.processes, found.lost_workers) = runner.processes();
    let tally = found.tally(NAME);
    let violations = violations(&tally, counts.example.as_deref(), runner.first_error().as_deref());
    Ok(ContestOutcome { tally, violations })
}

/// What must not be, a line each. `example` names two runs that met; `first_error` is what a worker said that ended by itself.
fn violations(tally: &Tally, example: Option<&str>, first_error: Option<&str>) -> Vec<String> {
    let mut violations = Vec::new();
    let number = |key: &str| tally.value(key).unwrap_or_default();
    let after = |words: Option<&str>| words.map_or_else(String::new, |words| format!(": {words}"));
    let mut none = |key: &str, thing: &str, what: String| {
        if number(key) > 0 {
            violations.push(format!("{} {what}", counted(number(key), thing)));
        }
    };
    none("double_runs", "pair", format!("of simultaneous runs of one task{}", after(example)));
    none("recovered_twice", "execution", "recovered more than once".to_owned());
    none("finishes_accepted", "finish", "accepted after the task was lost".to_owned());
    if number("executions") == 0 {
        violations.push(format!("no task was run{}", after(first_error)));
    } else if let Some(first_error) = first_error {
        violations.push(first_error.to_owned());
    }
    violations
}

/// A number of things; their word takes an s, or es.
fn counted(number: u64, thing: &str) -> String {
    let ending = match number {
        1 => "",
        _ if thing.ends_with("sh") => "es",
        _ => "s",
    };
    format!("{number} {thing}{ending}")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Tasks with these numbers, and 0 else.
    pub(in crate::tasks) fn tally(numbers: &[(&str, u64)]) -> Tally {
        let of = |key| numbers.iter().find(|(name, _)| *name == key).map_or(0, |(_, number)| *number);
        Tally::new(NAME, &KEYS, KEYS.map(of))
    }

    #[test]
    fn what_must_not_be_is_told() {
        let fine = [("executions", 9), ("recovered", 2), ("woken_runs", 1)];
        assert_eq!(violations(&tally(&fine), None, None), [] as [String; 0]);
        let twice = tally(&[("executions", 9), ("double_runs", 2), ("recovered_twice", 1)]);
        let told = violations(&twice, Some("task 7"), None);
        let pairs = "2 pairs of simultaneous runs of one task: task 7";
        assert_eq!(told, [pairs, "1 execution recovered more than once"]);
        let late = tally(&[("executions", 9), ("finishes_accepted", 2)]);
        assert_eq!(violations(&late, None, None), ["2 finishes accepted after the task was lost"]);
        assert_eq!(violations(&tally(&[]), None, Some("no server")), ["no task was run: no server"]);
        assert_eq!(violations(&tally(&fine), None, Some("a worker ended")), ["a worker ended"]);
    }
}
