use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use tokio_postgres::{Client, Error};

use super::witness::WitnessLog;
use crate::contest::{Contest, ContestOutcome, Environment, Report, Tally, count, numbers, tally};

/// The object that a demo without a screen prints. Keys may be added, never renamed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    pub tasks: Option<Tally>,
    pub seconds: f64,
    pub seed: u64,
    /// In the order in which they began.
    pub contests: Vec<Tally>,
}

impl Summary {
    fn entries(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let tasks = self.tasks.iter().flat_map(Tally::entries).map(|(key, number)| (key, number.into()));
        tasks.chain([("seconds", self.seconds.into()), ("seed", self.seed.into())])
    }

    /// The keys, for the command line. A contest's number is prefixed with the contest's name.
    #[must_use]
    pub fn keys() -> Vec<String> {
        let tasks = KEYS.into_iter().chain(["seconds", "seed"]).map(str::to_owned);
        let of = |contest: &'static Contest| {
            contest.keys().iter().map(move |key| format!("{}.{key}", contest.as_str()))
        };
        tasks.chain(Contest::ALL.iter().flat_map(of)).collect()
    }

    /// `None` if its contest did not run.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<f64> {
        if let Some((contest, key)) = key.split_once('.') {
            let tally = self.contests.iter().find(|tally| tally.name == contest)?;
            return Value::from(tally.value(key)?).as_f64();
        }
        self.entries().find(|(name, _)| *name == key)?.1.as_f64()
    }

    /// The first line of the report: whether there are violations, and the decisive numbers.
    #[must_use]
    pub fn verdict(&self, is_well: bool) -> String {
        let word = if is_well { "ok" } else { "FAILED" };
        let Some(tasks) = &self.tasks else {
            let names = self.contests.iter().map(|tally| tally.name).collect::<Vec<_>>().join(", ");
            return format!("{word}: {names}, {:.0} s", self.seconds);
        };
        let number = |key| tasks.value(key).unwrap_or_default();
        let twice = match number("double_runs") {
            0 => "no task ran twice at the same time".to_owned(),
            pairs => format!("{pairs} pairs of simultaneous runs of one task"),
        };
        let (executions, recovered) = (number("executions"), number("recovered"));
        format!("{word}: {executions} executions, {recovered} recovered, {twice}")
    }

    #[must_use]
    pub fn table(&self) -> String {
        let mut entries: Vec<(String, Value)> =
            self.entries().map(|(key, value)| (key.replace('_', " "), value)).collect();
        for tally in &self.contests {
            let name = |key: &str| format!("{}: {}", tally.name, key.replace('_', " "));
            entries.extend(tally.entries().map(|(key, number)| (name(key), number.into())));
        }
        let width = entries.iter().map(|(key, _)| key.len()).max().unwrap_or_default();
        let line = |(key, value): &(String, Value)| {
            let shown = match value.as_f64() {
                Some(number) if value.is_f64() => format!("{number:.1}"),
                _ => value.to_string(),
            };
            format!("{key:<width$}  {shown:>8}")
        };
        entries.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.entries() {
            map.serialize_entry(key, &value)?;
        }
        for tally in &self.contests {
            map.serialize_entry(tally.name, tally)?;
        }
        map.end()
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    pub summary: Summary,
    pub violations: Vec<String>,
}

impl Outcome {
    pub(super) fn add(&mut self, outcome: ContestOutcome) {
        if outcome.tally.name == NAME {
            self.summary.tasks = Some(outcome.tally);
        } else {
            self.summary.contests.push(outcome.tally);
        }
        self.violations.extend(outcome.violations);
    }
}

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
    Environment { schema, options, .. }: &Environment,
    report: &Report,
) -> Result<ContestOutcome, Error> {
    let (schema, has_recipe) = (schema.quoted(), options.recipe.is_some());
    let closed = if has_recipe { "error_message LIKE 'Task timeout%'" } else { "recovered_by IS NOT NULL" };
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
    let mut found =
        Numbers { workers: count(options.workers), tasks: count(options.tasks), ..Numbers::default() };
    found.extend(numbers(client, &log).await?);
    if !has_recipe {
        found.extend(numbers(client, &audit).await?);
    }
    found.extend(report.numbers(&KEYS));
    let (witnessed, example) = WitnessLog::read(client).await?.counts(&report.faults.pauses);
    found.extend(witnessed);
    let tally = found.tally(NAME);
    let violations = violations(&tally, example.as_deref(), report.first_error.as_deref());
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
mod tests {
    use super::*;

    fn tally(numbers: &[(&str, u64)]) -> Tally {
        let of = |key| numbers.iter().find(|(name, _)| *name == key).map_or(0, |(_, number)| *number);
        Tally::new(NAME, &KEYS, KEYS.map(of))
    }

    #[test]
    fn violations_are_reported() {
        let fine = [("executions", 9), ("recovered", 2), ("woken_runs", 1)];
        assert_eq!(violations(&tally(&fine), None, None), [] as [String; 0]);
        let twice = tally(&[("executions", 9), ("double_runs", 2), ("recovered_twice", 1)]);
        let reported = violations(&twice, Some("task 7"), None);
        let pairs = "2 pairs of simultaneous runs of one task: task 7";
        assert_eq!(reported, [pairs, "1 execution recovered more than once"]);
        let late = tally(&[("executions", 9), ("finishes_accepted", 2)]);
        assert_eq!(violations(&late, None, None), ["2 finishes accepted after the task was lost"]);
        assert_eq!(violations(&tally(&[]), None, Some("no server")), ["no task was run: no server"]);
        assert_eq!(violations(&tally(&fine), None, Some("a worker ended")), ["a worker ended"]);
    }

    fn summary(numbers: &[(&str, u64)]) -> Summary {
        Summary { tasks: Some(tally(numbers)), ..Summary::default() }
    }

    #[test]
    fn the_verdict_is_the_first_line() {
        let fine = summary(&[("workers", 2), ("executions", 90), ("recovered", 4)]);
        assert_eq!(fine.verdict(true), "ok: 90 executions, 4 recovered, no task ran twice at the same time");
        let bad = summary(&[("executions", 90), ("recovered", 4), ("double_runs", 2)]);
        assert_eq!(
            bad.verdict(false),
            "FAILED: 90 executions, 4 recovered, 2 pairs of simultaneous runs of one task"
        );
    }

    #[test]
    fn the_documented_keys_exist() {
        let keys = Summary::keys();
        for key in ["workers", "tasks", "executions", "completed", "failed", "recovered", "double_runs"] {
            assert!(keys.iter().any(|found| found == key), "{key}");
        }
        let summary = summary(&[("kills", 3)]);
        assert_eq!((summary.value("kills"), summary.value("Kills")), (Some(3.0), None));
    }

    #[test]
    fn people_get_a_line_each() {
        let table = Summary { seconds: 20.04, ..summary(&[("finishes_refused", 12)]) }.table();
        assert_eq!(table.lines().count(), KEYS.len() + 2);
        assert!(table.contains("finishes refused         12\n") && table.contains("20.0\n"), "{table}");
    }
}
