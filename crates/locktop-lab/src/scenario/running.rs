use std::time::Duration;

use super::ScenarioError;
use super::scratch::{ScratchSchema, Session, Task};

/// Interval between two checks whether any session still waits, and how long the scenario then remains.
const LOOK: Duration = Duration::from_millis(500);
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

    pub(super) async fn step(self) {
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
    pub(super) fn wait(&mut self, waiter: i32, holder: i32) {
        self.waits.push(Wait { waiter, holders: vec![Blocker::Backend(holder)], ahead: Some(Vec::new()) });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Release {
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
    pub(super) scratch: ScratchSchema,
    pub facts: Facts,
    pub(super) sessions: Vec<Session>,
    pub(super) tasks: Vec<Task>,
    pub(super) release: Release,
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

    /// Creates a table with these statements, and drops it at the end of the scenario.
    pub(super) async fn with_table(
        scratch: &ScratchSchema,
        name: &str,
        make: &str,
    ) -> Result<Self, ScenarioError> {
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
            tokio::time::sleep(LOOK).await;
        }
        tokio::time::sleep(SETTLE).await;
    }

    pub(super) async fn open(&mut self, name: &str) -> Result<Session, ScenarioError> {
        let session = self.scratch.session(name).await?;
        self.sessions.push(session.clone());
        Ok(session)
    }

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

    /// Opens a session whose statement is going to wait, and returns once it does.
    pub(super) async fn waiter(&mut self, name: &str, statement: &str) -> Result<Session, ScenarioError> {
        let session = self.open(name).await?;
        self.wait(&session, statement).await?;
        Ok(session)
    }

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
