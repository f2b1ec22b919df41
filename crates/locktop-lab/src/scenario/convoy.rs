//! A migration waits for a long report, and all other sessions for the migration.

use super::error::ScenarioError;
use super::running::{Blocker, Release, Running, Timing, Wait};
use super::scratch::ScratchSchema;

/// The sessions after the migration, and their statements. None of them would wait for the report, or for each other.
const TRAFFIC: [(&str, &str); 8] = [
    ("web-1", "SELECT id, state, total FROM orders WHERE id = 71"),
    ("web-6", "SELECT id, state, total FROM orders WHERE customer = 12 ORDER BY id DESC LIMIT 20"),
    ("checkout-2", "INSERT INTO orders (customer, state, total) VALUES (12, 'new', 49.90)"),
    ("web-2", "SELECT count(*) FROM orders WHERE state = 'new'"),
    ("shipping-cron", "UPDATE orders SET state = 'shipped' WHERE id = 17"),
    ("api-3", "SELECT sum(total) FROM orders WHERE customer = 5"),
    ("checkout-1", "INSERT INTO orders (customer, state, total) VALUES (5, 'new', 12.00)"),
    ("web-3", "DELETE FROM orders WHERE id = 93 AND state = 'cancelled'"),
];

pub(super) async fn start(scratch: &ScratchSchema, timing: Timing) -> Result<Running, ScenarioError> {
    let table = "CREATE TABLE orders (id serial PRIMARY KEY, customer int, state text, total numeric);
        INSERT INTO orders (customer, state, total) SELECT n % 40, 'paid', n FROM generate_series(1, 200) n";
    let mut running = Running::with_table(scratch, "orders", table).await?;
    running.release = Release::Cancel;
    // It is cancelled long before; this limit applies if no process is left to do that.
    let seconds = timing.hold.as_secs() + 120;
    let report = running.open("report-bi").await?;
    let long = format!("SELECT customer, sum(total) FROM orders, pg_sleep({seconds}) GROUP BY customer");
    running.tasks.push(report.send(long));
    let reads = "SELECT EXISTS (SELECT FROM pg_locks WHERE granted AND relation = 'orders'::regclass
                 AND pid = ANY ($1::int[]))";
    scratch.until("the report to start", reads, &[report.pid]).await?;
    running.facts.roots.push(Blocker::Backend(report.pid));

    timing.step().await;
    let migration = running.open("deploy-ci").await?;
    running.wait(&migration, "ALTER TABLE orders ADD COLUMN note text").await?;
    running.facts.wait(migration.pid, report.pid);
    for (name, statement) in TRAFFIC {
        timing.step().await;
        let session = running.open(name).await?;
        running.wait(&session, statement).await?;
        let wait = Wait { waiter: session.pid, holders: Vec::new(), ahead: Some(vec![migration.pid]) };
        running.facts.waits.push(wait);
    }
    Ok(running)
}
