use std::error::Error;

use pg_connect::error::ConnectError;

#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("cannot open a session for the demo: {0}")]
    Connect(#[from] ConnectError),
    #[error("the server refused `{statement}`: {message}")]
    Statement {
        /// In one line of at most 80 characters.
        statement: String,
        /// The server's message, or else the driver's.
        message: String,
    },
    #[error(
        "cannot make the schema {schema}: {message}; the demo needs a writable database, and the right to \
         create schemas in it (GRANT CREATE ON DATABASE)"
    )]
    NoSchema { schema: &'static str, message: String },
    #[error("waited 30 s without success for {0}")]
    Waited(&'static str),
    #[error(
        "the schema {schema} exists and was not created by locktop: drop or rename it, or run the demo in another database"
    )]
    ForeignSchema { schema: &'static str },
    #[error("unknown scenario {name:?}; the scenarios are {known}")]
    Unknown {
        name: String,
        /// Separated by commas.
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

pub(super) fn reason(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(
        || error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        |refusal| refusal.message().to_owned(),
    )
}
