//! Named states of contention, made of real sessions on a real server: the demo shows them, tests and benches measure
//! against them.
//!
//! A scenario returns once the server reports its state, together with the facts: which sessions wait, for which, and
//! which block all others. Everything is created in a separate schema (see [`ScratchSchema`]).

mod advisory;
mod running;
mod scratch;
mod tables;
mod traffic;

use std::error::Error;

use strum::{EnumString, IntoStaticStr, VariantArray};

use pg_connect::error::ConnectError;

pub use advisory::{AdvisoryContention, EXPORT_KEY, PAYOUT_KEY};
pub use running::{Blocker, Facts, Running, Timing, Wait};
pub use scratch::{SCHEMA, ScratchSchema};
pub use traffic::{Traffic, TrafficOptions};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray, EnumString)]
#[strum(serialize_all = "kebab-case", parse_err_fn = unknown, parse_err_ty = ScenarioError)]
pub enum Scenario {
    Chain,
    Convoy,
    Deadlock,
    /// 200 sessions wait for an advisory lock that an idle session holds.
    AdvisoryIdle,
    /// 20 sessions wait for an advisory lock that an idle transaction holds.
    AdvisoryInTransaction,
    /// Two sessions wait for an advisory lock that an idle session holds.
    SessionLock,
    Prepared,
    /// A reader waits for a statement that itself still waits.
    QueuedDdl,
    /// Of two sessions that hold locks on a table, only one blocks.
    InnocentHolder,
    TupleLocks,
    ParallelHolder,
    OtherDatabase,
}

impl Scenario {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The scenarios that the demo shows. They need no rights beyond creating a schema, and touch nothing outside it.
    pub const DEMO: [Self; 3] = [Self::Chain, Self::Convoy, Self::Deadlock];

    /// Builds it, and returns once its state exists.
    ///
    /// # Errors
    /// If the server refuses a session or a statement, or the state does not exist within 30 seconds.
    pub async fn start(self, scratch: &ScratchSchema, timing: Timing) -> Result<Running, ScenarioError> {
        match self {
            Self::Chain => advisory::chain(scratch, timing).await,
            Self::Convoy => tables::convoy(scratch, timing).await,
            Self::Deadlock => advisory::deadlock(scratch, timing).await,
            Self::AdvisoryIdle => AdvisoryContention::default().start(scratch).await,
            Self::AdvisoryInTransaction => {
                AdvisoryContention { waiters: 20, in_transaction: true, ..AdvisoryContention::default() }
                    .start(scratch)
                    .await
            }
            Self::SessionLock => advisory::session_lock(scratch).await,
            Self::Prepared => tables::prepared(scratch).await,
            Self::QueuedDdl => tables::ddl(scratch).await,
            Self::InnocentHolder => tables::innocent(scratch).await,
            Self::TupleLocks => advisory::tuples(scratch).await,
            Self::ParallelHolder => tables::parallel(scratch).await,
            Self::OtherDatabase => tables::other_database(scratch).await,
        }
    }
}

fn unknown(name: &str) -> ScenarioError {
    let known = Scenario::ALL.iter().copied().map(Scenario::as_str).collect::<Vec<_>>().join(", ");
    ScenarioError::Unknown { name: name.to_owned(), known }
}

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
    fn statement(statement: &str) -> impl FnOnce(tokio_postgres::Error) -> Self {
        let words: Vec<_> = statement.split_whitespace().collect();
        let mut statement = words.join(" ");
        if let Some((end, _)) = statement.char_indices().nth(80) {
            statement.truncate(end);
            statement.push('…');
        }
        move |error| Self::Statement { statement, message: reason(&error) }
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(
        || error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        |refusal| refusal.message().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::Scenario;

    #[test]
    fn a_scenario_is_found_by_its_name() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.as_str().parse::<Scenario>().unwrap(), *scenario);
        }
        let error = "Chain".parse::<Scenario>().unwrap_err().to_string();
        assert!(error.contains("\"Chain\"") && error.contains("convoy"), "{error}");
    }
}
