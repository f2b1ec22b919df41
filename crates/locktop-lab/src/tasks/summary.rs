use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::count::{KEYS, NAME};
use crate::contest::{Contest, ContestOutcome, Tally};

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

#[cfg(test)]
mod tests {
    use super::super::count::tests::tally;
    use super::*;

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
    fn the_keys_that_were_promised_are_there() {
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
