//! A worker of locktop's own, whose work is a [`labor`] with a witness.

use std::time::Duration;

use tokio::sync::watch;

use super::super::orders::{Orders, Payload};
use super::super::plan::Ends;
use super::super::witness::{ACCEPTED, REFUSED, Witness};
use super::labor::{End, labor};
use crate::pg::conninfo::ConnInfo;
use crate::schema::SchemaName;
use crate::worker::{self, Execution, Options, Stop, StopReason, Work, WorkError, WorkerId};

/// Tasks of minutes take seconds here, and so is a heartbeat shorter than usual.
const HEARTBEAT: Duration = Duration::from_millis(300);

pub(super) async fn run(orders: &Orders, quit: watch::Receiver<bool>) -> Result<(), String> {
    let info = ConnInfo::parse(&orders.conninfo).map_err(|error| error.to_string())?;
    let id: WorkerId = orders.worker.parse().map_err(|error| format!("{error}"))?;
    let schema = SchemaName::new(&orders.schema).map_err(|error| error.to_string())?;
    let witness = Witness::open(&info, &orders.worker, orders.process).await?;
    let lost = witness.lost();
    let options = Options {
        schema: schema.clone(),
        heartbeat: HEARTBEAT,
        // The demo is over: nobody waits for what runs.
        grace: Duration::ZERO,
        info: info.clone().with_application_name(&orders.worker),
        ..Options::new(info, id)
    };
    let chores = Chores { witness, schema, worker: orders.worker.clone() };
    tokio::select! {
        outcome = worker::run(options, chores, quit) => outcome.map(drop).map_err(|error| error.to_string()),
        () = lost => Err("the witness's connection was lost".to_owned()),
    }
}

/// What the demo's tasks are.
struct Chores {
    witness: Witness,
    schema: SchemaName,
    worker: String,
}

impl Work for Chores {
    async fn run(&self, execution: &Execution, stop: Stop) -> Result<(), WorkError> {
        let payload =
            execution.payload.as_deref().and_then(|text| serde_json::from_str::<Payload>(text).ok());
        let payload =
            payload.ok_or_else(|| WorkError::Failed("its payload is none of the demo's".to_owned()))?;
        let payload = match payload.ends {
            Ends::Fails if execution.attempt > 1 => Payload { ends: Ends::Well, ..payload },
            _ => payload,
        };
        let record =
            self.witness.begin(execution.task_id, Some(execution.id)).await.map_err(WorkError::Failed)?;
        let end =
            labor(execution.task_id, payload, &record, stop.stopped()).await.map_err(WorkError::Failed)?;
        let (outcome, told) = match end {
            End::Done => ("completed", Ok(())),
            End::Failed(error) => ("failed", Err(WorkError::Failed(error))),
            End::Stopped(StopReason::ShutDown) => ("stopped", Err(StopReason::ShutDown.into())),
            End::Stopped(reason) => (self.late_finish(execution).await, Err(reason.into())),
        };
        record.end(outcome).await.map_err(WorkError::Failed)?;
        told
    }
}

impl Chores {
    /// What a worker would do that did not notice: it reports its task as completed. The server must refuse.
    async fn late_finish(&self, execution: &Execution) -> &'static str {
        let counted = self.witness.finish(self.schema.quoted(), execution.task_id, &self.worker).await;
        match counted {
            Ok(false) => REFUSED,
            Ok(true) => ACCEPTED,
            Err(_) => "stopped",
        }
    }
}
