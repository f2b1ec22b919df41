use tokio::sync::watch;

use super::super::witness::{ACCEPTED, REFUSED, Witness};
use super::simulated_work::{End, simulate};
use crate::workers::{Payload, TaskEnd, WorkerConfig};
use locktop_tasks::schema::SchemaName;
use locktop_tasks::worker::{self, Job, Source, Stop, StopReason, Work, WorkError};
use pg_connect::conninfo::ConnInfo;

pub(super) async fn run(config: &WorkerConfig, quit: watch::Receiver<bool>) -> Result<(), String> {
    let info = ConnInfo::parse(&config.conninfo).map_err(|error| error.to_string())?;
    let witness = Witness::open(&info, &config.worker, config.process).await?;
    let lost = witness.lost();
    let options = config.options(Source::Tasks)?;
    let schema = options.schema.clone();
    let tasks = DemoTasks { witness, schema, worker: config.worker.clone() };
    tokio::select! {
        outcome = worker::run(options, tasks, quit) => outcome.map(drop).map_err(|error| error.to_string()),
        () = lost => Err("the witness's connection was lost".to_owned()),
    }
}

struct DemoTasks {
    witness: Witness,
    schema: SchemaName,
    worker: String,
}

impl Work for DemoTasks {
    async fn run(&self, job: &Job, stop: Stop) -> Result<(), WorkError> {
        let task = task_of(job).map_err(WorkError::Failed)?;
        let payload = job.payload.as_deref().and_then(|text| serde_json::from_str::<Payload>(text).ok());
        let payload =
            payload.ok_or_else(|| WorkError::Failed("its payload is not one of the demo".to_owned()))?;
        let payload = match payload.ends {
            TaskEnd::Fails if job.attempt > 1 => Payload { ends: TaskEnd::Well, ..payload },
            _ => payload,
        };
        let record = self.witness.begin(task, Some(job.id)).await.map_err(WorkError::Failed)?;
        let end = simulate(task, payload, &record, stop.stopped()).await.map_err(WorkError::Failed)?;
        let (outcome, told) = match end {
            End::Done => ("completed", Ok(())),
            End::Failed(error) => ("failed", Err(WorkError::Failed(error))),
            End::Stopped(StopReason::ShutDown) => ("stopped", Err(StopReason::ShutDown.into())),
            End::Stopped(reason) => (self.late_finish(task).await, Err(reason.into())),
        };
        record.end(outcome).await.map_err(WorkError::Failed)?;
        told
    }
}

impl DemoTasks {
    /// Reports its task as completed, as a worker that did not notice its loss would. The server must refuse.
    async fn late_finish(&self, task: i32) -> &'static str {
        let counted = self.witness.finish(self.schema.quoted(), task, &self.worker).await;
        match counted {
            Ok(false) => REFUSED,
            Ok(true) => ACCEPTED,
            Err(_) => "stopped",
        }
    }
}

/// The id of a task, which has half the size of an item's.
fn task_of(job: &Job) -> Result<i32, String> {
    i32::try_from(job.task_id).map_err(|_| format!("{} is not the id of a task", job.task_id))
}
