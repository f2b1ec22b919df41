//! Random traffic: sessions that take every kind of lock, in every order, to test the wait graph against the server.
//!
//! The traffic consists of transactions of one to five statements with pauses between them, so that there are moments
//! without changes. A seed determines what the sessions do, but not the result, since the server decides which session is
//! first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinHandle;

use super::scratch::{ScratchSchema, Session};
use crate::DemoError;

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
    pub async fn start(scratch: &ScratchSchema, options: TrafficOptions) -> Result<Self, DemoError> {
        scratch.run(TABLES).await?;
        let mut traffic = Self { scratch: scratch.clone(), shared: Arc::default(), tasks: Vec::new() };
        let mut seeds = Rng::with_seed(options.seed);
        for number in 0..options.sessions {
            let session = scratch.session(&format!("traffic-{number}")).await?;
            let mut random = Rng::with_seed(seeds.u64(..));
            session.run(&session_settings(&mut random, options.reordered)).await?;
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

    pub async fn stop(mut self) -> Result<(), DemoError> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.scratch.end(None).await?;
        for task in self.tasks.drain(..) {
            // An error is expected if the session was terminated in the middle of a statement.
            let _ = task.await;
        }
        let gids = format!(
            "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, '{GID}')"
        );
        for gid in self.scratch.texts(&gids).await? {
            self.scratch.run(&format!("ROLLBACK PREPARED '{gid}'")).await?;
        }
        self.scratch.run(DROP_TABLES).await
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
            let gid = format!("{}{}_{number}", GID, self.session.pid);
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

    async fn transaction(&mut self, gid: &str) -> Result<(), DemoError> {
        self.session.run("BEGIN").await?;
        for _ in 0..=self.random.u64(..5) {
            let statement = statement(&mut self.random);
            self.session.run(&statement).await?;
            self.think().await;
        }
        match end(&mut self.random) {
            TransactionEnd::Now(statement) => self.session.run(statement).await,
            TransactionEnd::InTwoPhases(second) => {
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

const GID: &str = "locktop_demo_traffic_";

/// Three tables with few rows, for collisions, and one that is large enough for a parallel scan.
const TABLES: &str = "
    DROP TABLE IF EXISTS traffic_1, traffic_2, traffic_3, traffic_scan;
    CREATE TABLE traffic_1 (id int PRIMARY KEY, n int NOT NULL);
    CREATE TABLE traffic_2 (LIKE traffic_1 INCLUDING ALL);
    CREATE TABLE traffic_3 (LIKE traffic_1 INCLUDING ALL);
    INSERT INTO traffic_1 SELECT id, 0 FROM generate_series(1, 4) id;
    INSERT INTO traffic_2 TABLE traffic_1;
    INSERT INTO traffic_3 TABLE traffic_1;
    CREATE TABLE traffic_scan (id int, filler text) WITH (parallel_workers = 2, fillfactor = 10);
    INSERT INTO traffic_scan SELECT id, repeat('x', 500) FROM generate_series(1, 60) id;
    ANALYZE traffic_scan";

const DROP_TABLES: &str = "DROP TABLE IF EXISTS traffic_1, traffic_2, traffic_3, traffic_scan";

const TABLE: [&str; 3] = ["traffic_1", "traffic_2", "traffic_3"];

const MODES: [&str; 8] = [
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

const STRENGTHS: [&str; 4] = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"];

const ADVISORY: [&str; 4] =
    ["pg_advisory_xact_lock", "pg_advisory_xact_lock_shared", "pg_advisory_lock", "pg_advisory_lock_shared"];

/// The settings of one session: every lock wait has a limit, and each session has a deadlock timeout of its own, since
/// the deadlock check is when the server changes the order of a queue.
fn session_settings(random: &mut Rng, reordered: bool) -> String {
    let lock = random.choice([150, 400, 1_000, 3_000]).unwrap_or_default();
    let deadlock = if reordered { random.choice([10, 40, 120, 1_000]).unwrap_or_default() } else { 1_000 };
    format!(
        "SET lock_timeout = {lock}; SET deadlock_timeout = {deadlock}; SET parallel_setup_cost = 0;
         SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2"
    )
}

/// One statement inside a transaction. A later one on the same table is a lock upgrade, if it is stronger.
fn statement(random: &mut Rng) -> String {
    let (table, row, key) =
        (random.choice(TABLE).unwrap_or_default(), 1 + random.u64(..4), 1 + random.u64(..3));
    match random.u64(..20) {
        0..=4 => format!("LOCK TABLE {table} IN {} MODE", random.choice(MODES).unwrap_or_default()),
        5..=8 => format!("UPDATE {table} SET n = n + 1 WHERE id = {row}"),
        9..=11 => format!(
            "SELECT n FROM {table} WHERE id = {row} FOR {}",
            random.choice(STRENGTHS).unwrap_or_default()
        ),
        12..=15 => format!("SELECT {}({key})", random.choice(ADVISORY).unwrap_or_default()),
        16 => format!("SELECT {}({key}, {row})", random.choice(ADVISORY).unwrap_or_default()),
        17 => format!("SELECT count(*) FROM {table}"),
        18 => "LOCK TABLE traffic_scan IN SHARE UPDATE EXCLUSIVE MODE".to_owned(),
        _ => "SELECT count(*) FROM traffic_scan WHERE pg_sleep(0.002) IS NOT NULL".to_owned(),
    }
}

enum TransactionEnd {
    Now(&'static str),
    InTwoPhases(&'static str),
}

/// One transaction in five ends in two phases.
fn end(random: &mut Rng) -> TransactionEnd {
    match random.u64(..20) {
        0..=2 => TransactionEnd::InTwoPhases("COMMIT PREPARED"),
        3 => TransactionEnd::InTwoPhases("ROLLBACK PREPARED"),
        4..=6 => TransactionEnd::Now("ROLLBACK"),
        _ => TransactionEnd::Now("COMMIT"),
    }
}
