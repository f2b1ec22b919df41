//! Scenarios of row locks.

use super::ScenarioError;
use super::advisory::PAYOUT_KEY;
use super::running::{Blocker, Release, Running, Timing};
use super::scratch::ScratchSchema;

/// The waiters, in order: each holds an account's row and wants the one before.
const WAITERS: [&str; 12] = [
    "web-1",
    "web-4",
    "billing-cron",
    "web-2",
    "payout-worker-1",
    "payout-worker-2",
    "web-3",
    "api-7",
    "mailer",
    "web-5",
    "fraud-check",
    "api-2",
];

/// The waiter that waits for an advisory lock instead of a row.
const ADVISORY: usize = 5;

/// Twelve sessions, each waiting for the one before, below a transaction that was left open.
pub(super) async fn chain(scratch: &ScratchSchema, timing: Timing) -> Result<Running, ScenarioError> {
    let table = "CREATE TABLE accounts (id int PRIMARY KEY, balance numeric NOT NULL) WITH (fillfactor = 50);
        INSERT INTO accounts SELECT id, 1000 FROM generate_series(1, 20) id";
    let mut running = Running::with_table(scratch, "accounts", table).await?;
    running.release = Release::Commit;
    let root = running.begin("psql-anna", "UPDATE accounts SET balance = balance - 250 WHERE id = 1").await?;
    running.facts.roots.push(Blocker::Backend(root.pid));
    let lock_payout = format!("SELECT pg_advisory_xact_lock({}, {})", PAYOUT_KEY.0, PAYOUT_KEY.1);
    let mut before = root;
    for (index, name) in WAITERS.into_iter().enumerate() {
        timing.step().await;
        let row = index + 1;
        let own = format!("UPDATE accounts SET balance = balance - 20 WHERE id = {}", row + 1);
        let session = running.begin(name, &own).await?;
        if index + 1 == ADVISORY {
            session.run(&lock_payout).await?;
        }
        let wanted = if index == ADVISORY {
            lock_payout.clone()
        } else {
            format!("UPDATE accounts SET balance = balance + 20 WHERE id = {row}")
        };
        running.tasks.push(session.send_and_commit(wanted, timing.step, "COMMIT"));
        scratch.waiting(&[session.pid]).await?;
        running.facts.wait(session.pid, before.pid);
        before = session;
    }
    Ok(running)
}

/// Two sessions that wait for each other, until the server's deadlock check aborts one of them.
pub(super) async fn deadlock(scratch: &ScratchSchema, timing: Timing) -> Result<Running, ScenarioError> {
    let table = "CREATE TABLE stock (sku text PRIMARY KEY, reserved int NOT NULL);
        INSERT INTO stock VALUES ('A-100', 0), ('B-200', 0)";
    let mut running = Running::with_table(scratch, "stock", table).await?;
    let reserve = |sku: &str| format!("UPDATE stock SET reserved = reserved + 1 WHERE sku = '{sku}'");
    let first = running.begin("picker-1", &reserve("A-100")).await?;
    timing.step().await;
    let second = running.begin("picker-2", &reserve("B-200")).await?;
    // Only a superuser may set this; for other roles the check runs after the server's own setting, by default 1 s.
    let timeout = format!("SET LOCAL deadlock_timeout = {}", timing.hold.as_millis());
    for session in [&first, &second] {
        if session.run(&format!("SAVEPOINT s; {timeout}")).await.is_err() {
            session.run("ROLLBACK TO SAVEPOINT s").await?;
        }
    }
    timing.step().await;
    for (session, sku) in [(&first, "B-200"), (&second, "A-100")] {
        running.tasks.push(session.send_and_commit(reserve(sku), timing.step, "COMMIT"));
    }
    scratch.waiting(&[first.pid, second.pid]).await?;
    running.facts.wait(first.pid, second.pid);
    running.facts.wait(second.pid, first.pid);
    Ok(running)
}

/// Two rows of one table, each with a queue of its own.
///
/// For each row: one session has changed it, the second waits for the first one's transaction and meanwhile holds the
/// row's tuple lock, and the third waits for that tuple lock. No session waits for one at the other row, although the
/// tuple locks differ only in the row's location.
pub(super) async fn tuples(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
    let table = "CREATE TABLE seats (id int PRIMARY KEY, taken int NOT NULL);
        INSERT INTO seats VALUES (1, 0), (2, 0)";
    let mut running = Running::with_table(scratch, "seats", table).await?;
    for row in [1, 2] {
        let take = format!("UPDATE seats SET taken = taken + 1 WHERE id = {row}");
        let mut before = running.begin(&format!("booking-{row}a"), &take).await?;
        running.facts.roots.push(Blocker::Backend(before.pid));
        for suffix in ["b", "c"] {
            let session = running.open(&format!("booking-{row}{suffix}")).await?;
            running.wait(&session, &take).await?;
            running.facts.wait(session.pid, before.pid);
            before = session;
        }
    }
    Ok(running)
}
