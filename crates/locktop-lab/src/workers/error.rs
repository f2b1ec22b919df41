//! What can go wrong with the tasks of a demo.

use std::io;

#[cfg(feature = "redis")]
use crate::redis::RedisServerError;
use locktop_tasks::schema::SchemaError;
use pg_connect::error::ConnectError;

/// Why the tasks of a demo cannot run.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// The server cannot be reached, or does not let us in.
    #[error("cannot connect for the demo's tasks: {0}")]
    Connect(#[from] ConnectError),
    /// The tables and functions.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Somebody's schema is there.
    #[error(
        "the schema {0} already exists, and the demo would create and drop it: another demo is running here, or one was killed; \
         \"locktop schema drop --schema {0}\" removes the rest"
    )]
    Exists(String),
    /// The server refuses a statement.
    #[error("the server refuses a request of the demo ({what}): {message}")]
    Server {
        /// What the statement was for.
        what: &'static str,
        /// The server's message, or else the driver's.
        message: String,
    },
    /// A worker process cannot be started.
    #[error("cannot start a worker process: {0}")]
    Worker(#[from] io::Error),
    /// The servers of Redis.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] RedisServerError),
    /// A recipe that lacks something.
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
