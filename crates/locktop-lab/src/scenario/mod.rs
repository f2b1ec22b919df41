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
mod session_lock;
mod traffic;
mod tuple;

pub use advisory::AdvisoryContention;
pub use error::ScenarioError;
pub use running::{Blocker, Facts, Running, Timing, Wait};
pub use scratch::{SCHEMA, ScratchSchema};
pub use session_lock::{EXPORT_KEY, PAYOUT_KEY};
pub use traffic::{Traffic, TrafficOptions};

use strum::{EnumString, IntoStaticStr, VariantArray};

/// One state of contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray, EnumString)]
#[strum(serialize_all = "kebab-case", parse_err_fn = unknown, parse_err_ty = ScenarioError)]
pub enum Scenario {
    /// Twelve sessions, each waiting for the one before, under an idle transaction.
    Chain,
    /// A migration waits for a long report, and everybody else for the migration.
    Convoy,
    /// Two sessions that wait for each other until the server ends one.
    Deadlock,
    /// 200 sessions wait for an advisory lock that an idle session holds.
    AdvisoryIdle,
    /// 20 sessions wait for an advisory lock that an idle transaction holds.
    AdvisoryInTransaction,
    /// Two sessions wait for an advisory lock that an idle session holds.
    SessionLock,
    /// Two prepared transactions, which no process stands for, block three sessions.
    Prepared,
    /// A reader waits for a statement that itself still waits.
    QueuedDdl,
    /// Of two holders of a table's locks only one is in the way.
    InnocentHolder,
    /// Two rows of one table, each with a queue of its own.
    TupleLocks,
    /// A parallel query is in the way: one blocker, not one a worker.
    ParallelHolder,
    /// A table in another database, with a holder and a waiter.
    OtherDatabase,
}

impl Scenario {
    /// All scenarios, in the order in which they are listed.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Those that the demo shows. They need no rights beyond making a schema, and touch nothing outside it.
    pub const DEMO: [Self; 3] = [Self::Chain, Self::Convoy, Self::Deadlock];

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
            Self::SessionLock => session_lock::start(scratch).await,
            Self::Prepared => prepared::start(scratch).await,
            Self::QueuedDdl => queue::ddl(scratch).await,
            Self::InnocentHolder => queue::innocent(scratch).await,
            Self::TupleLocks => tuple::start(scratch).await,
            Self::ParallelHolder => parallel::start(scratch).await,
            Self::OtherDatabase => other_database::start(scratch).await,
        }
    }
}

fn unknown(name: &str) -> ScenarioError {
    let known = Scenario::ALL.iter().copied().map(Scenario::as_str).collect::<Vec<_>>().join(", ");
    ScenarioError::Unknown { name: name.to_owned(), known }
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
