//! Named states of contention, made of real sessions on a real server: the demo shows them, tests and benches measure
//! against them.
//!
//! A scenario returns once the server reports its state, together with the facts: which sessions wait, for which, and
//! which block all others. Everything is created in a separate schema (see [`ScratchSchema`]).

mod advisory;
mod scratch;
mod tables;
mod traffic;

use std::error::Error;
use std::time::Duration;

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::DemoError;
pub use advisory::{AdvisoryContention, EXPORT_KEY, PAYOUT_KEY};
pub use scratch::{SCHEMA, ScratchSchema};
use scratch::{Session, Task};
pub use traffic::{Traffic, TrafficOptions};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray, EnumString)]
#[strum(serialize_all = "kebab-case", parse_err_fn = unknown, parse_err_ty = DemoError)]
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
    pub async fn start(self, scratch: &ScratchSchema, timing: Timing) -> Result<Running, DemoError> {
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

fn unknown(name: &str) -> DemoError {
    let known = Scenario::ALL.iter().copied().map(Scenario::as_str).collect::<Vec<_>>().join(", ");
    DemoError::Other(format!("unknown scenario {name:?}; the scenarios are {known}"))
}

impl DemoError {
    /// For `map_err`: names the statement, on one line and not at length.
    fn statement(statement: &str) -> impl FnOnce(tokio_postgres::Error) -> Self {
        let words: Vec<_> = statement.split_whitespace().collect();
        let mut statement = words.join(" ");
        if let Some((end, _)) = statement.char_indices().nth(80) {
            statement.truncate(end);
            statement.push('…');
        }
        move |error| refused(&statement, &reason(&error))
    }
}

fn refused(statement: &str, message: &str) -> DemoError {
    DemoError::Other(format!("the server refused `{statement}`: {message}"))
}

fn reason(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(
        || error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        |refusal| refusal.message().to_owned(),
    )
}

/// Interval between two checks whether any session still waits, and how long the scenario then remains.
const POLL: Duration = Duration::from_millis(500);
const SETTLE: Duration = Duration::from_secs(3);
const WAITS: &str = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = ANY($1))";

#[derive(Debug, Clone, Copy)]
pub struct Timing {
    pub step: Duration,
    pub hold: Duration,
}

impl Timing {
    /// For tests: built at once, and present until it is stopped.
    pub const TEST: Self = Self { step: Duration::ZERO, hold: Duration::from_secs(3_600) };
    /// Slow enough to watch.
    pub const DEMO: Self = Self { step: Duration::from_millis(300), hold: Duration::from_secs(60) };

    async fn step(self) {
        tokio::time::sleep(self.step).await;
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocker {
    /// The process id of a backend; of a parallel query, the leader's.
    Backend(i32),
    /// The gid of a prepared transaction.
    Prepared(String),
}

impl Blocker {
    /// As in `pg_blocking_pids`: 0 for a prepared transaction.
    #[must_use]
    pub fn pid(&self) -> i32 {
        match self {
            Self::Backend(pid) => *pid,
            Self::Prepared(_) => 0,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Wait {
    pub waiter: i32,
    /// All holders of a lock that conflicts with its request.
    pub holders: Vec<Blocker>,
    /// Process ids of the waiters ahead of it in the queue whose requests conflict with its own. `None` if the order of
    /// arrival was left to chance: then any of the other waiters may be ahead.
    pub ahead: Option<Vec<i32>>,
}

#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Blockers that wait for no other. Empty in a deadlock.
    pub roots: Vec<Blocker>,
    pub waits: Vec<Wait>,
    /// Process ids of sessions that hold a lock on the same object, or work for the session that does, and block none.
    pub innocent: Vec<i32>,
}

impl Facts {
    /// Adds a backend that waits for one holder and for no other waiter.
    fn wait(&mut self, waiter: i32, holder: i32) {
        self.wait_for(waiter, vec![Blocker::Backend(holder)], Vec::new());
    }

    fn wait_for(&mut self, waiter: i32, holders: Vec<Blocker>, ahead: Vec<i32>) {
        self.waits.push(Wait { waiter, holders, ahead: Some(ahead) });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Release {
    ByItself,
    Commit,
    Cancel,
    /// Nothing does: all sessions are terminated.
    End,
}

/// A state of contention made of real sessions. Dropping it closes them; [`Self::stop`] also waits for that and cleans
/// up.
#[derive(Debug)]
pub struct Running {
    scratch: ScratchSchema,
    pub facts: Facts,
    sessions: Vec<Session>,
    tasks: Vec<Task>,
    release: Release,
    cleanup: Vec<String>,
}

impl Running {
    fn new(scratch: &ScratchSchema) -> Self {
        Self {
            scratch: scratch.clone(),
            facts: Facts::default(),
            sessions: Vec::new(),
            tasks: Vec::new(),
            release: Release::ByItself,
            cleanup: Vec::new(),
        }
    }

    /// Creates a table with these statements, and drops it at the end of the scenario.
    async fn with_table(scratch: &ScratchSchema, name: &str, make: &str) -> Result<Self, DemoError> {
        let drop = format!("DROP TABLE IF EXISTS {name}");
        scratch.run(&format!("{drop}; {make}")).await?;
        Ok(Self { cleanup: vec![drop], ..Self::new(scratch) })
    }

    pub(crate) fn lasts(&self) -> bool {
        self.release != Release::ByItself
    }

    /// Returns a moment after no session waits any more.
    pub(crate) async fn resolved(&self) {
        let waiters: Vec<i32> = self.facts.waits.iter().map(|wait| wait.waiter).collect();
        // An error means that the server is lost: then the scenario lasts for its full time.
        while self.scratch.ask(WAITS, &waiters).await.unwrap_or(true) {
            tokio::time::sleep(POLL).await;
        }
        tokio::time::sleep(SETTLE).await;
    }

    async fn open(&mut self, name: &str) -> Result<Session, DemoError> {
        let session = self.scratch.session(name).await?;
        self.sessions.push(session.clone());
        Ok(session)
    }

    /// Opens a session that has run statements in a transaction, and blocks others without waiting.
    async fn root(&mut self, name: &str, statements: &str) -> Result<Session, DemoError> {
        let session = self.begin(name, statements).await?;
        self.facts.roots.push(Blocker::Backend(session.pid));
        Ok(session)
    }

    async fn begin(&mut self, name: &str, statements: &str) -> Result<Session, DemoError> {
        let session = self.open(name).await?;
        session.run("BEGIN").await?;
        session.run(statements).await?;
        Ok(session)
    }

    /// Sends a statement that is going to wait, and returns once it does.
    async fn wait(&mut self, session: &Session, statement: &str) -> Result<(), DemoError> {
        self.tasks.push(session.send(statement));
        self.scratch.waiting(&[session.pid]).await
    }

    /// Opens a session whose statement is going to wait, and returns once it does.
    async fn waiter(&mut self, name: &str, statement: &str) -> Result<Session, DemoError> {
        let session = self.open(name).await?;
        self.wait(&session, statement).await?;
        Ok(session)
    }

    pub async fn dissolve(mut self) -> Result<(), DemoError> {
        if let Some(root) = self.sessions.first() {
            match self.release {
                Release::Commit => root.run("COMMIT").await?,
                Release::Cancel => self.scratch.cancel(root.pid).await?,
                Release::End => return self.stop().await,
                Release::ByItself => {}
            }
        }
        for task in self.tasks.drain(..) {
            let _ = task.await;
        }
        self.stop().await
    }

    pub async fn stop(mut self) -> Result<(), DemoError> {
        let pids: Vec<_> = self.sessions.iter().map(|session| session.pid).collect();
        let mut outcome = self.scratch.end(Some(&pids)).await;
        self.sessions.clear();
        for statement in &self.cleanup {
            outcome = outcome.and(self.scratch.run(statement).await);
        }
        outcome
    }
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
