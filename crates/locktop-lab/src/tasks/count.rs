use tokio_postgres::{Client, Error};

use super::tables::TaskTables;
use super::witness::WitnessLog;
use crate::contest::{ContestOutcome, Report, Tally, count, numbers, tally};

pub(super) const NAME: &str = "tasks";

tally! {
    // Slots for workers, and tasks in the table.
    workers tasks
    // Rows of the log; those that completed; those that failed, including the recovered ones.
    executions completed failed
    // Executions closed on behalf of their worker, by a recovery or by the worker that took the task next.
    recovered
    // Pairs of runs of one task that were at work at the same time, as the workers themselves witnessed.
    double_runs
    // Pairs that overlap only in what a stopped worker did after it resumed and before it checked: at most one sign, and its
    // end.
    woken_runs
    // Runs that were witnessed.
    runs
    // Runs that had lost their task when they ended: the server refused their finish, or accepted it.
    finishes_refused finishes_accepted
    // Executions that were closed on behalf of their worker more than once.
    recovered_twice
    // Recovered executions that the next worker closed.
    superseded
    // Executions that the log still had as running when it was read.
    running
    // Workers killed with SIGKILL in mid-task.
    kills
    // Workers stopped with SIGSTOP in mid-task, and resumed with SIGCONT; of these, those whose execution was recovered
    // while they were stopped.
    stops overslept
    // Sessions with a task's lock that were terminated while the worker continued.
    cuts
    // Worker processes started, and those that ended unexpectedly.
    processes lost_workers
}

pub(super) async fn found(
    client: &Client,
    tables: &TaskTables,
    report: &Report,
    (workers, tasks): (usize, usize),
) -> Result<ContestOutcome, Error> {
    let schema = tables.schema.quoted();
    let closed =
        if tables.recipe { "error_message LIKE 'Task timeout%'" } else { "recovered_by IS NOT NULL" };
    let log = format!(
        "SELECT count(*) AS executions, count(*) FILTER (WHERE status = 'completed') AS completed,
                count(*) FILTER (WHERE status = 'failed') AS failed,
                count(*) FILTER (WHERE status = 'running') AS running, count(*) FILTER (WHERE {closed}) AS recovered
           FROM {schema}.task_execution_log"
    );
    let audit = format!(
        "SELECT count(*) FILTER (WHERE times > 1) AS recovered_twice, count(*) FILTER (WHERE superseded) AS superseded
           FROM (SELECT count(*) AS times, bool_or(action = 'superseded') AS superseded
                   FROM {schema}.locktop_audit
                  WHERE action IN ('recovered', 'gave_up', 'superseded') AND execution_id IS NOT NULL
                  GROUP BY execution_id) q"
    );
    let mut found = Numbers { workers: count(workers), tasks: count(tasks), ..Numbers::default() };
    found.extend(numbers(client, &log).await?);
    if !tables.recipe {
        found.extend(numbers(client, &audit).await?);
    }
    found.extend(report.numbers(&KEYS));
    let counts = WitnessLog::read(client).await?.counts(&report.faults.pauses);
    (found.runs, found.double_runs, found.woken_runs) = (counts.runs, counts.double_runs, counts.woken_runs);
    (found.finishes_refused, found.finishes_accepted) = (counts.finishes_refused, counts.finishes_accepted);
    let tally = found.tally(NAME);
    let violations = violations(&tally, counts.example.as_deref(), report.first_error.as_deref());
    Ok(ContestOutcome { tally, violations })
}

/// The violations, one line each. `example` names two runs that overlapped; `first_error` is the error of a worker that
/// ended unexpectedly.
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
