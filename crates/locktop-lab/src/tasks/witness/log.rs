use tokio_postgres::Client;

use super::interval::{Overlap, Run, overlaps};
use crate::contest::PauseInterval;
use crate::scenario::SCHEMA;

pub(in crate::tasks) struct WitnessLog {
    runs: Vec<Run>,
    names: Vec<(i64, String)>,
    refused: u64,
    accepted: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::tasks) struct WitnessCounts {
    pub(in crate::tasks) runs: u64,
    pub(in crate::tasks) double_runs: u64,
    pub(in crate::tasks) woken_runs: u64,
    pub(in crate::tasks) finishes_refused: u64,
    pub(in crate::tasks) finishes_accepted: u64,
    /// Describes the first double run.
    pub(in crate::tasks) example: Option<String>,
}

/// The outcome of a run that was reported as completed after its task was lost: refused, as it must be, or accepted.
pub(in crate::tasks) const REFUSED: &str = "refused";
pub(in crate::tasks) const ACCEPTED: &str = "accepted";

impl WitnessLog {
    pub(in crate::tasks) async fn read(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let moment = |column: &str| format!("(extract(epoch FROM {column}) * 1000000)::bigint");
        let columns = ["began", "before_last", "last", "ended"].map(moment).join(", ");
        let sql = format!(
            "SELECT task_id, process, {columns}, run, worker, coalesce(outcome, '') FROM {SCHEMA}.witness ORDER BY run"
        );
        let mut found = Self { runs: Vec::new(), names: Vec::new(), refused: 0, accepted: 0 };
        for row in client.query(&sql, &[]).await? {
            found.runs.push(Run {
                task: row.try_get(0)?,
                process: row.try_get(1)?,
                began: row.try_get(2)?,
                before_last: row.try_get(3)?,
                last: row.try_get(4)?,
                ended: row.try_get(5)?,
            });
            found.names.push((row.try_get(6)?, row.try_get(7)?));
            let outcome: &str = row.try_get(8)?;
            found.refused += u64::from(outcome == REFUSED);
            found.accepted += u64::from(outcome == ACCEPTED);
        }
        Ok(found)
    }

    pub(in crate::tasks) fn counts(&self, stops: &[PauseInterval]) -> WitnessCounts {
        let mut counts = WitnessCounts {
            runs: u64::try_from(self.runs.len()).unwrap_or(u64::MAX),
            finishes_refused: self.refused,
            finishes_accepted: self.accepted,
            ..WitnessCounts::default()
        };
        for (first, second, met) in overlaps(&self.runs, stops) {
            match met {
                Overlap::Double => {
                    counts.double_runs += 1;
                    if counts.example.is_none() {
                        counts.example = self.words(first, second);
                    }
                }
                Overlap::Woken => counts.woken_runs += 1,
                Overlap::Apart => {}
            }
        }
        counts
    }

    fn words(&self, first: usize, second: usize) -> Option<String> {
        let run = self.runs.get(first)?;
        let ((one, by_one), (two, by_two)) = (self.names.get(first)?, self.names.get(second)?);
        Some(format!("task {}: run {one} of {by_one} and run {two} of {by_two}", run.task))
    }
}
