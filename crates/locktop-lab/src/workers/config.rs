//! The configuration of a worker process, in one line on its standard input. A connection string may contain a password,
//! so none of it is on a command line.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use super::plan::{PlannedTask, TaskEnd, planned_tasks};
use crate::Language;
use locktop_tasks::schema::SchemaName;
use locktop_tasks::worker::{Options, Source, WorkerId};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;
use tokio_postgres::Client;

const LOOK: Duration = Duration::from_millis(200);
/// Work of minutes takes seconds here, so the heartbeat is shorter than usual, too.
const HEARTBEAT: Duration = Duration::from_millis(300);

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkerConfig {
    /// The complete connection string.
    pub(crate) conninfo: String,
    pub(crate) schema: String,
    /// The worker's name; for several workers, the prefix of their names.
    pub(crate) worker: String,
    /// Its number among all processes of the kind that the demo started.
    pub(crate) process: i32,
    pub(crate) role: WorkerRole,
    /// Whether the schema contains a recipe's functions.
    pub(crate) recipe: bool,
    pub(crate) plan: Plan,
}

impl WorkerConfig {
    /// Connection parameters, with the worker's name and a suffix as the name of the application.
    pub(crate) fn info(&self, suffix: &str) -> Result<ConnInfo, String> {
        let info = ConnInfo::parse(&self.conninfo).map_err(|error| error.to_string())?;
        Ok(info.with_application_name(&format!("{}{suffix}", self.worker)))
    }

    /// The connection over which this process records what it does, independent of its other sessions.
    pub(crate) async fn witness(&self) -> Result<Arc<Client>, String> {
        let connection = connect(&self.info(" witness")?).await;
        connection.map(|connection| Arc::new(connection.client)).map_err(|error| error.to_string())
    }

    /// Random choices of this process.
    pub(crate) fn random(&self, seed: u64) -> Rng {
        Rng::with_seed(seed ^ u64::from(self.process.unsigned_abs()) << 32)
    }

    pub(crate) fn options(&self, source: Source) -> Result<Options, String> {
        let info = self.info("")?;
        let id: WorkerId = self.worker.parse().map_err(|error| format!("{error}"))?;
        Ok(Options {
            schema: SchemaName::new(&self.schema).map_err(|error| error.to_string())?,
            sources: vec![source],
            heartbeat: HEARTBEAT,
            // The demo is over: nothing waits for what still runs.
            grace: Duration::ZERO,
            info: info.clone(),
            ..Options::new(info, id)
        })
    }
}

/// Works as long as the connection of its witness lasts: nothing can be witnessed without it.
pub(crate) async fn witnessed<T, E: Display>(
    witness: &Client,
    work: impl Future<Output = Result<T, E>>,
) -> Result<(), String> {
    let lost = async {
        while !witness.is_closed() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        outcome = work => outcome.map(drop).map_err(|error| error.to_string()),
        () = lost => Err("the witness's connection was lost".to_owned()),
    }
}

impl std::fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The rest may contain a password.
        f.debug_struct("WorkerConfig").field("worker", &self.worker).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerRole {
    Tasks,
    /// Competes for `leases` leases, with a term in milliseconds.
    Leases {
        leases: i32,
        term: u64,
        seed: u64,
    },
    Queue,
    /// Uses locks with a term in milliseconds on these servers, of which the first is used on its own.
    #[cfg(feature = "redis")]
    Redis {
        urls: Vec<String>,
        term: u64,
        seed: u64,
    },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) count: usize,
    pub(crate) hanging: bool,
    pub(crate) language: Language,
    pub(crate) time_scale: f64,
}

impl Plan {
    pub(crate) fn tasks(&self) -> Vec<PlannedTask> {
        planned_tasks(self.seed, self.count, (self.hanging, self.language))
    }

    pub(crate) fn payload(&self, task: &PlannedTask) -> String {
        let payload = Payload { seconds: self.scaled(task.work), ends: task.ends };
        serde_json::to_string(&payload).unwrap_or_default()
    }

    pub(crate) fn scaled(&self, seconds: f64) -> f64 {
        seconds / self.time_scale
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) seconds: f64,
    pub(crate) ends: TaskEnd,
}
