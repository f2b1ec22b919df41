mod config;
mod plan;
mod pool;

use std::io;

#[cfg(feature = "redis")]
use crate::redis::RedisServerError;
use locktop_tasks::schema::SchemaError;
use pg_connect::error::ConnectError;

pub(crate) use config::{Payload, Plan, WorkerConfig, WorkerRole, witnessed};
pub(crate) use plan::TaskEnd;
pub(crate) use pool::WorkerPool;

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
