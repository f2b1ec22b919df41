//! A queue worker, like `locktop worker`. It reports its work on an item over a separate connection, before, during and
//! after the work; the table itself shows which worker ended an item.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_postgres::Client;

use super::producer::{ItemEnd, Payload};
use crate::scenario::SCHEMA;
use crate::workers::{WorkerConfig, witnessed};
use locktop_tasks::worker::{self, Job, Source, Stop, Work, WorkError};

const TICK: Duration = Duration::from_millis(100);

pub(crate) async fn run(config: &WorkerConfig, quit: watch::Receiver<bool>) -> Result<(), String> {
    let witness = config.witness().await?;
    let items = Items { witness: Arc::clone(&witness), worker: config.worker.clone() };
    witnessed(&witness, Box::pin(worker::run(config.options(Source::Queue)?, items, quit))).await
}

struct Items {
    witness: Arc<Client>,
    worker: String,
}

impl Work for Items {
    async fn run(&self, job: &Job, stop: Stop) -> Result<(), WorkError> {
        let payload = job.payload.as_deref().and_then(|text| serde_json::from_str::<Payload>(text).ok());
        let payload =
            payload.ok_or_else(|| WorkError::Refused("its payload is not one of the demo".to_owned()))?;
        let run = self.begin(job).await?;
        let reason = tokio::select! {
            // A request to stop has priority.
            biased;
            reason = stop.stopped() => Some(reason),
            done = self.work(run, Duration::from_millis(payload.milliseconds)) => {
                done?;
                None
            }
        };
        let (outcome, told) = match (reason, payload.ends) {
            (Some(reason), _) => ("stopped", Err(reason.into())),
            (None, ItemEnd::Again) if job.attempt == 1 => {
                ("failed", Err(WorkError::Failed("SMTP 451: try again later".to_owned())))
            }
            (None, ItemEnd::Badly) => ("failed", Err(WorkError::Refused("the image is damaged".to_owned()))),
            (None, ItemEnd::Well | ItemEnd::Again) => ("done", Ok(())),
        };
        self.end(run, outcome).await?;
        told
    }
}

impl Items {
    /// Records the start; the work begins only after this is written.
    async fn begin(&self, job: &Job) -> Result<i64, WorkError> {
        let sql = format!(
            "INSERT INTO {SCHEMA}.queue_runs (item, attempt, worker) VALUES ($1, $2, $3) RETURNING n"
        );
        let row = self.witness.query_one(&sql, &[&job.id, &job.attempt, &self.worker]).await;
        row.and_then(|row| row.try_get(0)).map_err(failed)
    }

    async fn work(&self, run: i64, time: Duration) -> Result<(), WorkError> {
        let sql = format!("UPDATE {SCHEMA}.queue_runs SET last = clock_timestamp() WHERE n = $1");
        let mut left = time;
        while left > TICK {
            tokio::time::sleep(TICK).await;
            left -= TICK;
            self.witness.execute(&sql, &[&run]).await.map_err(failed)?;
        }
        tokio::time::sleep(left).await;
        Ok(())
    }

    async fn end(&self, run: i64, outcome: &str) -> Result<(), WorkError> {
        let sql =
            format!("UPDATE {SCHEMA}.queue_runs SET last = clock_timestamp(), outcome = $2 WHERE n = $1");
        self.witness.execute(&sql, &[&run, &outcome]).await.map(drop).map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: tokio_postgres::Error) -> WorkError {
    WorkError::Failed(format!("the witness could not write: {error}"))
}
