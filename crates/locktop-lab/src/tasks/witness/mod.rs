//! Witnesses: what ran when, as recorded by the workers. Each worker writes on a connection that is independent of its
//! lock, before, during and after the work. The log of executions cannot show it: a recovery closes a row there while the
//! work continues, and then no two rows ever overlap.

mod interval;

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use crate::contest::{PauseInterval, count};
use crate::scenario::SCHEMA;
use crate::workers::WorkerConfig;
use interval::{Overlap, Run, overlaps};

/// Interval between two signs of work.
pub(super) const TICK: Duration = Duration::from_millis(100);

pub(super) fn table() -> String {
    format!(
        "CREATE TABLE {SCHEMA}.witness (
             run bigserial PRIMARY KEY,
             task_id integer NOT NULL,
             execution_id bigint,
             worker text NOT NULL,
             process integer NOT NULL,
             pid integer NOT NULL,
             began timestamptz NOT NULL DEFAULT clock_timestamp(),
             before_last timestamptz,
             last timestamptz NOT NULL DEFAULT clock_timestamp(),
             ended timestamptz,
             outcome text
         ) WITH (fillfactor = 60);
         COMMENT ON TABLE {SCHEMA}.witness IS
             'The runs of tasks as their workers record them, on a connection other than that of their lock, before, during and after'"
    )
}

pub(in crate::tasks) struct Witness {
    client: Arc<Client>,
    worker: String,
    process: i32,
}

impl Witness {
    /// Writes over the connection [`WorkerConfig::witness`].
    pub(in crate::tasks) fn new(client: &Arc<Client>, config: &WorkerConfig) -> Self {
        Self { client: Arc::clone(client), worker: config.worker.clone(), process: config.process }
    }

    /// Reports a task that is not this session's as completed, and returns whether that counted.
    pub(in crate::tasks) async fn finish(
        &self,
        schema: String,
        task: i32,
        worker: &str,
    ) -> Result<bool, tokio_postgres::Error> {
        let sql = format!("SELECT {schema}.try_release_task_lock($1, $2, 'completed')");
        self.client.query_one(&sql, &[&task, &worker]).await?.try_get(0)
    }

    pub(in crate::tasks) async fn begin(
        &self,
        task: i32,
        execution: Option<i64>,
    ) -> Result<Record<'_>, String> {
        let sql = format!(
            "INSERT INTO {SCHEMA}.witness (task_id, execution_id, worker, process, pid)
             VALUES ($1, $2, $3, $4, $5) RETURNING run"
        );
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let row = self.client.query_one(&sql, &[&task, &execution, &self.worker, &self.process, &pid]).await;
        let run = row.and_then(|row| row.try_get(0)).map_err(|error| error_text(&error))?;
        Ok(Record { client: &self.client, run })
    }
}

pub(in crate::tasks) struct Record<'a> {
    client: &'a Client,
    run: i64,
}

impl Record<'_> {
    pub(in crate::tasks) async fn tick(&self) -> Result<(), String> {
        let sql = format!(
            "UPDATE {SCHEMA}.witness SET before_last = last, last = clock_timestamp() WHERE run = $1"
        );
        self.client.execute(&sql, &[&self.run]).await.map(drop).map_err(|error| error_text(&error))
    }

    pub(in crate::tasks) async fn end(&self, outcome: &str) -> Result<(), String> {
        let sql =
            format!("UPDATE {SCHEMA}.witness SET ended = clock_timestamp(), outcome = $2 WHERE run = $1");
        self.client.execute(&sql, &[&self.run, &outcome]).await.map(drop).map_err(|error| error_text(&error))
    }
}

fn error_text(error: &tokio_postgres::Error) -> String {
    format!("the witness could not write: {error}")
}

pub(in crate::tasks) struct WitnessLog {
    runs: Vec<Run>,
    names: Vec<(i64, String)>,
    refused: u64,
    accepted: u64,
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

    /// The numbers, and two runs that overlapped, in words.
    pub(in crate::tasks) fn counts(&self, stops: &[PauseInterval]) -> ([(String, u64); 5], Option<String>) {
        let (mut double_runs, mut woken_runs, mut example) = (0, 0, None);
        for (first, second, met) in overlaps(&self.runs, stops) {
            match met {
                Overlap::Double => {
                    double_runs += 1;
                    example = example.or_else(|| self.words(first, second));
                }
                Overlap::Woken => woken_runs += 1,
                Overlap::Apart => {}
            }
        }
        let numbers = [
            ("runs", count(self.runs.len())),
            ("double_runs", double_runs),
            ("woken_runs", woken_runs),
            ("finishes_refused", self.refused),
            ("finishes_accepted", self.accepted),
        ];
        (numbers.map(|(key, number)| (key.to_owned(), number)), example)
    }

    fn words(&self, first: usize, second: usize) -> Option<String> {
        let run = self.runs.get(first)?;
        let ((one, by_one), (two, by_two)) = (self.names.get(first)?, self.names.get(second)?);
        Some(format!("task {}: run {one} of {by_one} and run {two} of {by_two}", run.task))
    }
}
