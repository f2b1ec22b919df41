//! What can go wrong while a state of contention is built.

use std::error::Error;

use pg_connect::error::ConnectError;

/// Why a scenario did not come about.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A session could not be opened.
    #[error("cannot open a session for the demo: {0}")]
    Connect(#[from] ConnectError),
    /// The server refused a statement.
    #[error("the server refused `{statement}`: {message}")]
    Statement {
        /// The statement on one line, at most 80 characters of it.
        statement: String,
        /// The server's message, or else the driver's.
        message: String,
    },
    /// The server does not let us make our schema.
    #[error(
        "cannot make the schema {schema}: {message}; the demo needs a writable database, and the right to \
         create schemas in it (GRANT CREATE ON DATABASE)"
    )]
    NoSchema {
        /// The name of the schema.
        schema: &'static str,
        /// What the server says.
        message: String,
    },
    /// A state that did not come about in time.
    #[error("waited 30 s without success for {0}")]
    Waited(&'static str),
    /// The schema belongs to somebody else.
    #[error(
        "the schema {schema} exists and was not created by locktop: drop or rename it, or run the demo in another database"
    )]
    ForeignSchema {
        /// The name of the schema.
        schema: &'static str,
    },
    /// The name of a scenario that there is not.
    #[error("unknown scenario {name:?}; the scenarios are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that there are, separated by commas.
        known: String,
    },
}

impl ScenarioError {
    /// For `map_err`: names the statement, on one line and not at length.
    pub(super) fn statement(statement: &str) -> impl FnOnce(tokio_postgres::Error) -> Self {
        let words: Vec<_> = statement.split_whitespace().collect();
        let mut statement = words.join(" ");
        if let Some((end, _)) = statement.char_indices().nth(80) {
            statement.truncate(end);
            statement.push('…');
        }
        move |error| Self::Statement { statement, message: reason(&error) }
    }
}

/// What the server, or else the driver, says.
pub(super) fn reason(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(
        || error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        |refusal| refusal.message().to_owned(),
    )
}
