mod plan;
mod pool;

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use locktop_tasks::schema::{SchemaError, SchemaName};
use locktop_tasks::worker::{Options, Source, WorkerId};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;
use pg_connect::error::ConnectError;
use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

pub(crate) use plan::TaskEnd;
use plan::{PlannedTask, planned_tasks};
pub(crate) use pool::WorkerPool;

#[cfg(feature = "redis")]
use crate::redis::RedisServerError;

#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    #[error("cannot connect for the demo's tasks: {0}")]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(
        "the schema {0} already exists, and the demo would create and drop it: another demo is running here, or one was killed; \
         \"locktop schema drop --schema {0}\" removes the rest"
    )]
    Exists(String),
    #[error("the server refuses a request of the demo ({what}): {message}")]
    Server { what: &'static str, message: String },
    #[error("cannot start a worker process: {0}")]
    Worker(#[from] io::Error),
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] RedisServerError),
    #[error("the recipe cannot be used: {0}")]
    Recipe(String),
}

impl TasksError {
    /// For `map_err`: names what the statement was for.
    pub(crate) fn server(what: &'static str) -> impl FnOnce(tokio_postgres::Error) -> Self {
        move |error| {
            let message = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
            Self::Server { what, message }
        }
    }
}

/// The language of the names that a demo gives to tasks, queue items and locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    #[must_use]
    pub fn of<T>(self, (english, chinese): (T, T)) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

const POLL: Duration = Duration::from_millis(500);

/// Whether the dashboard of a demo has a question open: while one is open, nothing is repaired and nothing proceeds
/// automatically. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct OpenQuestion(Arc<AtomicBool>);

impl OpenQuestion {
    /// True when a question is opened, false once it is closed and all that was confirmed is done.
    pub fn set_open(&self, is_open: bool) {
        self.0.store(is_open, Ordering::Relaxed);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) async fn closed(&self) {
        while self.is_open() {
            tokio::time::sleep(POLL).await;
        }
    }
}

const LOOK: Duration = Duration::from_millis(200);
/// Work of minutes takes seconds here, so the heartbeat is shorter than usual, too.
const HEARTBEAT: Duration = Duration::from_millis(300);

/// The configuration of a worker process, in one line on its standard input. A connection string may contain a password,
/// so none of it is on a command line.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkerConfig {
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
    pub(crate) fn random(&self) -> Rng {
        Rng::with_seed(self.plan.seed ^ u64::from(self.process.unsigned_abs()) << 32)
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
    /// Competes for leases, with a term in milliseconds.
    Leases {
        term: u64,
    },
    Queue,
    /// Uses locks with a term in milliseconds on these servers, of which the first is used on its own.
    #[cfg(feature = "redis")]
    Redis {
        urls: Vec<String>,
        term: u64,
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
