//! What came of it, in numbers.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::contest::{Contest, Found, Tally};

/// The object that a demo without a screen prints. Keys may be added, never renamed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Places for workers.
    pub workers: u64,
    /// Tasks in the table.
    pub tasks: u64,
    /// Rows of the log.
    pub executions: u64,
    /// Those that ended well.
    pub completed: u64,
    /// Those that failed, the recovered ones included.
    pub failed: u64,
    /// Those that were closed in their worker's place, by a recovery or by the worker that got the task next.
    pub recovered: u64,
    /// Pairs of runs of one task that were at work at the same time, as they witnessed themselves.
    pub double_runs: u64,
    /// Pairs that met only in what a stopped worker did when it woke and had not looked yet: at most one sign, and its end.
    pub woken_runs: u64,
    /// Runs that were witnessed.
    pub runs: u64,
    /// Those that had lost their task when they came to an end: the server refused their finish.
    pub finishes_refused: u64,
    /// Those of them whose finish counted all the same.
    pub finishes_accepted: u64,
    /// Executions that were closed in their worker's place more than once.
    pub recovered_twice: u64,
    /// Of the recovered ones those that the next worker closed.
    pub superseded: u64,
    /// Executions that the log still had as running when it was read.
    pub running: u64,
    /// Workers killed with SIGKILL in mid-task.
    pub kills: u64,
    /// Workers stopped with SIGSTOP in mid-task, and woken with SIGCONT.
    pub stops: u64,
    /// Those of them whose execution was recovered while they stood still.
    pub overslept: u64,
    /// Sessions with a task's lock that were ended while the worker went on.
    pub cuts: u64,
    /// Worker processes started.
    pub processes: u64,
    /// Workers that ended without being told to.
    pub lost_workers: u64,
    /// How long it was played, in seconds.
    pub seconds: f64,
    /// What it was played from.
    pub seed: u64,
    /// What was played beside the tasks.
    pub contests: Vec<Tally>,
}

impl Summary {
    /// Its keys and numbers, in order.
    fn entries(&self) -> [(&'static str, Value); 22] {
        [
            ("workers", self.workers.into()),
            ("tasks", self.tasks.into()),
            ("executions", self.executions.into()),
            ("completed", self.completed.into()),
            ("failed", self.failed.into()),
            ("recovered", self.recovered.into()),
            ("double_runs", self.double_runs.into()),
            ("woken_runs", self.woken_runs.into()),
            ("runs", self.runs.into()),
            ("finishes_refused", self.finishes_refused.into()),
            ("finishes_accepted", self.finishes_accepted.into()),
            ("recovered_twice", self.recovered_twice.into()),
            ("superseded", self.superseded.into()),
            ("running", self.running.into()),
            ("kills", self.kills.into()),
            ("stops", self.stops.into()),
            ("overslept", self.overslept.into()),
            ("cuts", self.cuts.into()),
            ("processes", self.processes.into()),
            ("lost_workers", self.lost_workers.into()),
            ("seconds", self.seconds.into()),
            ("seed", self.seed.into()),
        ]
    }

    /// The same without what only tasks have, where none were played.
    fn played(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let tasks = self.workers > 0 || self.contests.is_empty();
        self.entries().into_iter().filter(move |(key, _)| tasks || matches!(*key, "seconds" | "seed"))
    }

    /// Its keys, for the command line. A number of a contest has the contest's name before it.
    #[must_use]
    pub fn keys() -> Vec<String> {
        let tasks = Self::default().entries().into_iter().map(|(key, _)| key.to_owned());
        let of = |contest: Contest| contest.keys().iter().map(move |key| format!("{}.{key}", contest.name()));
        tasks.chain(Contest::ALL.into_iter().flat_map(of)).collect()
    }

    /// One of its numbers.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<f64> {
        if let Some((contest, key)) = key.split_once('.') {
            let tally = self.contests.iter().find(|tally| tally.contest.name() == contest)?;
            return Value::from(tally.value(key)?).as_f64();
        }
        self.entries().into_iter().find(|(name, _)| *name == key)?.1.as_f64()
    }

    /// The first line for people: whether all went as it must, and the numbers that tell.
    #[must_use]
    pub fn verdict(&self, is_well: bool) -> String {
        let word = if is_well { "ok" } else { "FAILED" };
        if self.workers == 0 {
            let names = self.contests.iter().map(|tally| tally.contest.name()).collect::<Vec<_>>().join(", ");
            return format!("{word}: {names}, {:.0} s", self.seconds);
        }
        let twice = match self.double_runs {
            0 => "no task ran twice at once".to_owned(),
            pairs => format!("{pairs} pairs of runs of one task at once"),
        };
        format!("{word}: {} executions, {} recovered, {twice}", self.executions, self.recovered)
    }

    /// One line a number, for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut entries: Vec<(String, Value)> =
            self.played().map(|(key, value)| (key.replace('_', " "), value)).collect();
        for tally in &self.contests {
            let name = |key: &str| format!("{}: {}", tally.contest.name(), key.replace('_', " "));
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
        for (key, value) in self.played() {
            map.serialize_entry(key, &value)?;
        }
        for tally in &self.contests {
            map.serialize_entry(tally.contest.name(), tally)?;
        }
        map.end()
    }
}

/// A summary, and what must not be and is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The numbers.
    pub summary: Summary,
    /// What must not be, a line each.
    pub broken: Vec<String>,
}

impl Outcome {
    /// Judges a summary. `example` names two runs that met; `complaint` is what a worker said that ended by itself.
    pub(super) fn of(summary: Summary, example: Option<&str>, complaint: Option<&str>) -> Self {
        let mut broken = Vec::new();
        if summary.double_runs > 0 {
            let example = example.map_or_else(String::new, |example| format!(": {example}"));
            let pairs = counted(summary.double_runs, "pair");
            broken.push(format!("{pairs} of runs of one task at work at once{example}"));
        }
        if summary.recovered_twice > 0 {
            let executions = counted(summary.recovered_twice, "execution");
            broken.push(format!("{executions} recovered more than once"));
        }
        if summary.finishes_accepted > 0 {
            let finishes = counted(summary.finishes_accepted, "finish");
            broken.push(format!("{finishes} that counted after the task was lost"));
        }
        if summary.executions == 0 && summary.workers > 0 {
            let complaint = complaint.map_or_else(String::new, |complaint| format!(": {complaint}"));
            broken.push(format!("no task was run{complaint}"));
        } else if let Some(complaint) = complaint {
            broken.push(complaint.to_owned());
        }
        Self { summary, broken }
    }

    /// Adds what came of a contest.
    pub(super) fn add(&mut self, found: Found) {
        self.summary.contests.push(found.tally);
        self.broken.extend(found.broken);
    }
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
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_the_first_line() {
        let fine = Summary { workers: 2, executions: 90, recovered: 4, ..Summary::default() };
        assert_eq!(fine.verdict(true), "ok: 90 executions, 4 recovered, no task ran twice at once");
        let bad = Summary { double_runs: 2, ..fine };
        assert_eq!(
            bad.verdict(false),
            "FAILED: 90 executions, 4 recovered, 2 pairs of runs of one task at once"
        );
    }

    #[test]
    fn the_keys_that_were_promised_are_there() {
        let keys = Summary::keys();
        for key in ["workers", "tasks", "executions", "completed", "failed", "recovered", "double_runs"] {
            assert!(keys.iter().any(|found| found == key), "{key}");
        }
        let summary = Summary { kills: 3, ..Summary::default() };
        assert_eq!((summary.value("kills"), summary.value("Kills")), (Some(3.0), None));
    }

    #[test]
    fn people_get_a_line_each() {
        let table = Summary { finishes_refused: 12, seconds: 20.04, ..Summary::default() }.table();
        assert_eq!(table.lines().count(), Summary::default().entries().len());
        assert!(table.contains("finishes refused         12\n") && table.contains("20.0\n"), "{table}");
    }

    #[test]
    fn what_must_not_be_is_told() {
        let fine = Summary { executions: 9, recovered: 2, woken_runs: 1, ..Summary::default() };
        assert_eq!(Outcome::of(fine.clone(), None, None).broken, [] as [String; 0]);
        let twice = Summary { double_runs: 2, recovered_twice: 1, ..fine.clone() };
        let broken = Outcome::of(twice, Some("task 7"), None).broken;
        assert_eq!(broken[0], "2 pairs of runs of one task at work at once: task 7");
        let late = Summary { finishes_accepted: 2, ..fine.clone() };
        assert_eq!(Outcome::of(late, None, None).broken, ["2 finishes that counted after the task was lost"]);
        assert_eq!(broken[1], "1 execution recovered more than once");
        let idle = Outcome::of(Summary { workers: 1, ..Summary::default() }, None, Some("no server")).broken;
        assert_eq!(idle, ["no task was run: no server"]);
        assert_eq!(Outcome::of(fine, None, Some("a worker ended")).broken, ["a worker ended"]);
    }
}
