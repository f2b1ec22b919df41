//! What can go wrong while a state of contention is built.

use std::error::Error;

use crate::pg::error::ConnectError;

/// Why a scenario did not come about.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A session could not be opened.
    #[error("cannot open a session for the demo: {0}")]
    Connect(#[from] ConnectError),
    /// The server refused a statement.
    #[error("the server refused `{statement}`: {message}")]
    Statement {
        /// What was sent.
        statement: String,
        /// What it answered.
        message: String,
    },
    /// A state that did not come about in time.
    #[error("waited 30 s in vain for {0}")]
    Waited(&'static str),
    /// The schema belongs to somebody else.
    #[error(
        "there is a schema {schema} that locktop did not make: drop or rename it, or run the demo in another database"
    )]
    ForeignSchema {
        /// Its name.
        schema: &'static str,
    },
    /// No such scenario.
    #[error("there is no scenario {name:?}; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What could be.
        known: String,
    },
}

impl ScenarioError {
    /// For `map_err`: names the statement.
    pub(super) fn statement(statement: &str) -> impl FnOnce(tokio_postgres::Error) -> Self {
        let statement = statement.to_owned();
        move |error| {
            let detail = error.source().map(ToString::to_string);
            Self::Statement { statement, message: detail.unwrap_or_else(|| error.to_string()) }
        }
    }
}
