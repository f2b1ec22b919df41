//! What a worker process is told, in one line on its standard input. A connection string may hold a password, so none of it is on
//! a command line.

use crate::Language;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::{PlannedTask, TaskEnd, planned_tasks};
use locktop_tasks::schema::SchemaName;
use locktop_tasks::worker::{Options, Source, WorkerId};
use pg_connect::conninfo::ConnInfo;

/// Work of minutes takes seconds here, and so is a heartbeat shorter than usual.
const HEARTBEAT: Duration = Duration::from_millis(300);

/// One line of JSON.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkerConfig {
    /// Where to connect, with everything.
    pub(crate) conninfo: String,
    /// The schema of the task tables.
    pub(crate) schema: String,
    /// Its name; where there are to be several, what their names begin with.
    pub(crate) worker: String,
    /// Its number, of all processes of the kind that the demo started.
    pub(crate) process: i32,
    /// What it is to do.
    pub(crate) role: WorkerRole,
    /// Whether the schema has somebody else's functions in it.
    pub(crate) recipe: bool,
    pub(crate) plan: Plan,
}

impl WorkerConfig {
    /// The worker that they describe, which takes work from one source.
    pub(crate) fn options(&self, source: Source) -> Result<Options, String> {
        let info = ConnInfo::parse(&self.conninfo).map_err(|error| error.to_string())?;
        let id: WorkerId = self.worker.parse().map_err(|error| format!("{error}"))?;
        Ok(Options {
            schema: SchemaName::new(&self.schema).map_err(|error| error.to_string())?,
            sources: vec![source],
            heartbeat: HEARTBEAT,
            // The demo is over: nobody waits for what runs.
            grace: Duration::ZERO,
            info: info.clone().with_application_name(&self.worker),
            ..Options::new(info, id)
        })
    }
}

impl std::fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // There may be a password in the rest.
        f.debug_struct("WorkerConfig").field("worker", &self.worker).finish_non_exhaustive()
    }
}

/// What a process does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerRole {
    /// It runs scheduled tasks.
    Tasks,
    /// It competes for so many leases, with a term of so many milliseconds.
    Leases { leases: i32, term: u64, seed: u64 },
    /// It works off the queue.
    Queue,
    /// It uses locks with a term of so many milliseconds in these servers, of which the first stands alone.
    #[cfg(feature = "redis")]
    Redis { urls: Vec<String>, term: u64, seed: u64 },
}

/// What the tasks were made from.
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

    /// What the row of a task says of its work.
    pub(crate) fn payload(&self, task: &PlannedTask) -> String {
        let payload = Payload { seconds: self.scaled(task.work), ends: task.ends };
        serde_json::to_string(&payload).unwrap_or_default()
    }

    /// A duration in the demo's time, in seconds.
    pub(crate) fn scaled(&self, seconds: f64) -> f64 {
        seconds / self.time_scale
    }
}

/// What a task's row says of the work, for the worker that gets it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Payload {
    /// How long it takes.
    pub(crate) seconds: f64,
    pub(crate) ends: TaskEnd,
}
