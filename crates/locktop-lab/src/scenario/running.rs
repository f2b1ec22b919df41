//! A scenario that has come about, and what is true about it.

use std::time::Duration;

use super::error::ScenarioError;
use super::scratch::ScratchSchema;
use super::session::{Session, Task};

/// Between two looks whether somebody still waits, and how long it stays as it is then.
const LOOK: Duration = Duration::from_millis(500);
const SETTLE: Duration = Duration::from_secs(3);
const WAITS: &str = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = ANY($1))";

/// How fast a scenario goes.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Between one session and the next.
    pub step: Duration,
    /// How long the state lasts, once it has come about.
    pub hold: Duration,
}

impl Timing {
    /// Built at once, and there until it is stopped: for tests.
    pub const TEST: Self = Self { step: Duration::ZERO, hold: Duration::from_secs(3_600) };
    /// Slow enough to watch.
    pub const DEMO: Self = Self { step: Duration::from_millis(300), hold: Duration::from_secs(60) };

    pub(super) async fn step(self) {
        tokio::time::sleep(self.step).await;
    }
}

/// A holder that others wait for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocker {
    /// A backend, by its process id; of a parallel query the leader.
    Backend(i32),
    /// A prepared transaction, by its gid.
    Prepared(String),
}

impl Blocker {
    /// As `pg_blocking_pids` has it: 0 for a prepared transaction.
    #[must_use]
    pub fn pid(&self) -> i32 {
        match self {
            Self::Backend(pid) => *pid,
            Self::Prepared(_) => 0,
        }
    }
}

/// What one backend waits for.
#[derive(Debug, Clone)]
pub struct Wait {
    /// Process id of the backend that waits.
    pub waiter: i32,
    /// All that hold a lock which conflicts with its request.
    pub holders: Vec<Blocker>,
    /// Process ids of all that stand before it in the queue with a request that conflicts with its own. `None` where the
    /// order of arrival was left to chance: then any of the other waiters may.
    pub ahead: Option<Vec<i32>>,
}

/// What is true about a scenario while it lasts.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Who blocks and waits for nobody. Empty in a deadlock.
    pub roots: Vec<Blocker>,
    /// What each waiting backend waits for.
    pub waits: Vec<Wait>,
    /// Process ids of sessions that hold a lock on the same thing, or work for the one that does, and block nobody.
    pub innocent: Vec<i32>,
}

impl Facts {
    /// A backend waits for one holder and for nobody in the queue.
    pub(super) fn wait(&mut self, waiter: i32, holder: i32) {
        self.waits.push(Wait { waiter, holders: vec![Blocker::Backend(holder)], ahead: Some(Vec::new()) });
    }
}

/// How a scenario dissolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
    /// The server sees to it.
    ByItself,
    /// The first session commits.
    Commit,
    /// The first session's query is cancelled.
    Cancel,
    /// Nothing does: all sessions are ended.
    End,
}

/// A state of contention made of real sessions. Dropping it closes them; [`Self::stop`] also waits for that and cleans
/// up.
#[derive(Debug)]
pub struct Running {
    pub(super) scratch: ScratchSchema,
    /// What is true now.
    pub facts: Facts,
    pub(super) sessions: Vec<Session>,
    /// Statements that were sent and have not ended.
    pub(super) tasks: Vec<Task>,
    /// What lets the waiters go on.
    pub(super) release: Release,
    /// What removes everything that was made. Each is tried, whatever becomes of the others.
    pub(super) cleanup: Vec<String>,
}

impl Running {
    pub(super) fn new(scratch: &ScratchSchema) -> Self {
        Self {
            scratch: scratch.clone(),
            facts: Facts::default(),
            sessions: Vec::new(),
            tasks: Vec::new(),
            release: Release::ByItself,
            cleanup: Vec::new(),
        }
    }

    /// With a table that these statements make, and that the end of the scenario drops.
    pub(super) async fn with_table(
        scratch: &ScratchSchema,
        name: &str,
        make: &str,
    ) -> Result<Self, ScenarioError> {
        let drop = format!("DROP TABLE IF EXISTS {name}");
        scratch.run(&format!("{drop}; {make}")).await?;
        Ok(Self { cleanup: vec![drop], ..Self::new(scratch) })
    }

    /// Whether it lasts until [`Self::dissolve`], and does not end by itself.
    pub(crate) fn lasts(&self) -> bool {
        self.release != Release::ByItself
    }

    /// Returns a moment after nobody waits any more, without what happens then by itself.
    pub(crate) async fn resolved(&self) {
        let waiters: Vec<i32> = self.facts.waits.iter().map(|wait| wait.waiter).collect();
        // An error is a lost server: then the end of the time is the end.
        while self.scratch.ask(WAITS, &waiters).await.unwrap_or(true) {
            tokio::time::sleep(LOOK).await;
        }
        tokio::time::sleep(SETTLE).await;
    }

    /// Opens one more session.
    pub(super) async fn open(&mut self, name: &str) -> Result<Session, ScenarioError> {
        let session = self.scratch.session(name).await?;
        self.sessions.push(session.clone());
        Ok(session)
    }

    /// Opens one more session and begins a transaction in it.
    pub(super) async fn begin(&mut self, name: &str, statements: &str) -> Result<Session, ScenarioError> {
        let session = self.open(name).await?;
        session.run("BEGIN").await?;
        session.run(statements).await?;
        Ok(session)
    }

    /// Sends a statement that is going to wait, and returns once it does.
    pub(super) async fn wait(&mut self, session: &Session, statement: &str) -> Result<(), ScenarioError> {
        self.tasks.push(session.send(statement));
        self.scratch.waiting(&[session.pid]).await
    }

    /// Lets the root go and the waiters finish, one after the other, then stops.
    pub async fn dissolve(mut self) -> Result<(), ScenarioError> {
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

    /// Ends every session and removes what was made; returns once that is so.
    pub async fn stop(mut self) -> Result<(), ScenarioError> {
        let pids: Vec<_> = self.sessions.iter().map(|session| session.pid).collect();
        let mut outcome = self.scratch.end(Some(&pids)).await;
        self.sessions.clear();
        for statement in &self.cleanup {
            outcome = outcome.and(self.scratch.run(statement).await);
        }
        outcome
    }
}
