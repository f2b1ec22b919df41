//! Random traffic: sessions that take every kind of lock, in every order, to test the wait graph against the server.
//!
//! The traffic consists of transactions of one to five statements with pauses between them, so that there are moments
//! without changes. A seed determines what the sessions do, but not the result, since the server decides which session is
//! first.

mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinHandle;

use self::script::End;
use super::error::ScenarioError;
use super::scratch::ScratchSchema;
use super::session::Session;

#[derive(Debug, Clone, Copy)]
pub struct TrafficOptions {
    pub sessions: usize,
    /// Determines the statements of each session.
    pub seed: u64,
    pub pause: Duration,
    /// Each session checks for deadlocks after a time of its own, from 10 ms on, instead of the server's default of one
    /// second: in that check the server changes the order of a queue, which no scan of `pg_locks` shows.
    pub reordered: bool,
}

impl Default for TrafficOptions {
    fn default() -> Self {
        Self { sessions: 14, seed: 1, pause: Duration::from_millis(60), reordered: true }
    }
}

/// Traffic that continues until it is stopped or dropped.
///
/// The server needs `max_prepared_transactions` of at least the number of sessions, and the user must be a superuser.
#[derive(Debug)]
pub struct Traffic {
    scratch: ScratchSchema,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    transactions: AtomicU64,
    failures: AtomicU64,
}

impl Traffic {
    pub async fn start(scratch: &ScratchSchema, options: TrafficOptions) -> Result<Self, ScenarioError> {
        scratch.run(script::TABLES).await?;
        let mut traffic = Self { scratch: scratch.clone(), shared: Arc::default(), tasks: Vec::new() };
        let mut seeds = Rng::with_seed(options.seed);
        for number in 0..options.sessions {
            let session = scratch.session(&format!("traffic-{number}")).await?;
            let mut random = Rng::with_seed(seeds.u64(..));
            session.run(&script::settings(&mut random, options.reordered)).await?;
            let traffic_session =
                TrafficSession { session, random, pause: options.pause, shared: Arc::clone(&traffic.shared) };
            traffic.tasks.push(tokio::spawn(traffic_session.run()));
        }
        Ok(traffic)
    }

    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.shared.transactions.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn failures(&self) -> u64 {
        self.shared.failures.load(Ordering::Relaxed)
    }

    pub async fn stop(mut self) -> Result<(), ScenarioError> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.scratch.end(None).await?;
        for task in self.tasks.drain(..) {
            // An error is expected if the session was terminated in the middle of a statement.
            let _ = task.await;
        }
        let gids = format!(
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, '{}')",
            script::GID
        );
        for gid in self.scratch.texts(&gids).await? {
            self.scratch.run(&format!("ROLLBACK PREPARED '{gid}'")).await?;
        }
        self.scratch.run(script::DROP_TABLES).await
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

struct TrafficSession {
    session: Session,
    random: Rng,
    pause: Duration,
    shared: Arc<Shared>,
}

impl TrafficSession {
    async fn run(mut self) {
        let mut number = 0_u64;
        while !self.shared.stop.load(Ordering::Relaxed) {
            number += 1;
            let gid = format!("{}{}_{number}", script::GID, self.session.pid);
            let failed = self.transaction(&gid).await.is_err();
            // Also releases what the session holds beyond the transaction; fails if the session was terminated.
            if self.session.run("ROLLBACK; SELECT pg_advisory_unlock_all()").await.is_err() {
                return;
            }
            self.shared.transactions.fetch_add(1, Ordering::Relaxed);
            self.shared.failures.fetch_add(u64::from(failed), Ordering::Relaxed);
            self.think().await;
        }
    }

    async fn transaction(&mut self, gid: &str) -> Result<(), ScenarioError> {
        self.session.run("BEGIN").await?;
        for _ in 0..=self.random.u64(..5) {
            let statement = script::statement(&mut self.random);
            self.session.run(&statement).await?;
            self.think().await;
        }
        match script::end(&mut self.random) {
            End::Now(statement) => self.session.run(statement).await,
            End::InTwoPhases(second) => {
                self.session.run(&format!("PREPARE TRANSACTION '{gid}'")).await?;
                self.think().await;
                self.think().await;
                self.session.run(&format!("{second} '{gid}'")).await
            }
        }
    }

    async fn think(&mut self) {
        let longest = u64::try_from(self.pause.as_micros()).unwrap_or(u64::MAX);
        tokio::time::sleep(Duration::from_micros(self.random.u64(..longest.saturating_add(1)))).await;
    }
}
