//! Named states of contention, made of real sessions on a real server: the demo shows them, tests and benches measure
//! against them.
//!
//! A scenario returns once its state has come about, which it learns from the server, together with what is true
//! then: who waits, for whom, who blocks all others. Everything is made in a schema of its own (see [`ScratchSchema`]).

mod advisory;
mod chain;
mod convoy;
mod deadlock;
mod error;
mod limits;
mod other_database;
mod parallel;
mod prepared;
mod queue;
mod running;
mod scratch;
mod session;
mod traffic;
mod tuple;

pub use advisory::AdvisoryContention;
pub use error::ScenarioError;
pub use running::{Blocker, Facts, Running, Timing, Wait};
pub use scratch::{SCHEMA, ScratchSchema};
pub use traffic::{Traffic, TrafficOptions};

use std::str::FromStr;

/// One state of contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// See [`Self::description`].
    Chain,
    /// See [`Self::description`].
    Convoy,
    /// See [`Self::description`].
    Deadlock,
    /// See [`Self::description`].
    AdvisoryIdle,
    /// See [`Self::description`].
    AdvisoryInTransaction,
    /// See [`Self::description`].
    Prepared,
    /// See [`Self::description`].
    QueuedDdl,
    /// See [`Self::description`].
    InnocentHolder,
    /// See [`Self::description`].
    TupleLocks,
    /// See [`Self::description`].
    ParallelHolder,
    /// See [`Self::description`].
    OtherDatabase,
}

impl Scenario {
    /// All scenarios, in the order in which they are listed.
    pub const ALL: [Self; 11] = [
        Self::Chain,
        Self::Convoy,
        Self::Deadlock,
        Self::AdvisoryIdle,
        Self::AdvisoryInTransaction,
        Self::Prepared,
        Self::QueuedDdl,
        Self::InnocentHolder,
        Self::TupleLocks,
        Self::ParallelHolder,
        Self::OtherDatabase,
    ];

    /// Those that the demo shows. They need no rights beyond making a schema, and touch nothing outside it.
    pub const DEMO: [Self; 3] = [Self::Chain, Self::Convoy, Self::Deadlock];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.text().0
    }

    /// What the viewer should see.
    #[must_use]
    pub fn description(self) -> &'static str {
        self.text().1
    }

    fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::Chain => {
                ("chain", "twelve sessions, each waiting for the one before, under an idle transaction")
            }
            Self::Convoy => {
                ("convoy", "a migration waits for a long report, and everybody else for the migration")
            }
            Self::Deadlock => ("deadlock", "two sessions that wait for each other until the server ends one"),
            Self::AdvisoryIdle => {
                ("advisory-idle", "200 sessions wait for an advisory lock that an idle session holds")
            }
            Self::AdvisoryInTransaction => (
                "advisory-in-transaction",
                "20 sessions wait for an advisory lock that an idle transaction holds",
            ),
            Self::Prepared => {
                ("prepared", "two prepared transactions, which no process stands for, block three sessions")
            }
            Self::QueuedDdl => ("queued-ddl", "a reader waits for a statement that itself still waits"),
            Self::InnocentHolder => {
                ("innocent-holder", "of two holders of a table's locks only one is in the way")
            }
            Self::TupleLocks => ("tuple-locks", "two rows of one table, each with a queue of its own"),
            Self::ParallelHolder => {
                ("parallel-holder", "a parallel query is in the way: one blocker, not one a worker")
            }
            Self::OtherDatabase => {
                ("other-database", "a table in another database, with a holder and a waiter")
            }
        }
    }

    /// Makes it, and returns once it has come about.
    ///
    /// # Errors
    /// When the server refuses a session or a statement, or the state does not come about within 30 seconds.
    pub async fn start(self, scratch: &ScratchSchema, timing: Timing) -> Result<Running, ScenarioError> {
        match self {
            Self::Chain => chain::start(scratch, timing).await,
            Self::Convoy => convoy::start(scratch, timing).await,
            Self::Deadlock => deadlock::start(scratch, timing).await,
            Self::AdvisoryIdle => AdvisoryContention::default().start(scratch).await,
            Self::AdvisoryInTransaction => {
                AdvisoryContention { waiters: 20, in_transaction: true, ..AdvisoryContention::default() }
                    .start(scratch)
                    .await
            }
            Self::Prepared => prepared::start(scratch).await,
            Self::QueuedDdl => queue::ddl(scratch).await,
            Self::InnocentHolder => queue::innocent(scratch).await,
            Self::TupleLocks => tuple::start(scratch).await,
            Self::ParallelHolder => parallel::start(scratch).await,
            Self::OtherDatabase => other_database::start(scratch).await,
        }
    }
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|scenario| scenario.name() == name);
        found.ok_or_else(|| ScenarioError::Unknown { name: name.to_owned(), known: known() })
    }
}

#[cfg(test)]
mod tests {
    use super::Scenario;

    #[test]
    fn a_scenario_is_found_by_its_name() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.name().parse::<Scenario>().unwrap(), scenario);
        }
        let error = "Chain".parse::<Scenario>().unwrap_err().to_string();
        assert!(error.contains("\"Chain\"") && error.contains("convoy"), "{error}");
    }
}
