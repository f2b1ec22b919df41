//! Twelve sessions, each waiting for the one before, below a transaction that was left open.

use super::error::ScenarioError;
use super::running::{Blocker, Release, Running, Timing};
use super::scratch::ScratchSchema;
use super::session_lock::PAYOUT_KEY;

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

pub(super) async fn start(scratch: &ScratchSchema, timing: Timing) -> Result<Running, ScenarioError> {
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
