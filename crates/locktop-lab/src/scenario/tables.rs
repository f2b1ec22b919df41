//! Scenarios of table locks.

use super::scratch::ScratchSchema;
use super::{Blocker, Release, Running, Timing};
use crate::DemoError;

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

/// A migration waits for a long report, and all other sessions for the migration.
pub(super) async fn convoy(scratch: &ScratchSchema, timing: Timing) -> Result<Running, DemoError> {
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
    let migration = running.waiter("deploy-ci", "ALTER TABLE orders ADD COLUMN note text").await?;
    running.facts.wait(migration.pid, report.pid);
    for (name, statement) in TRAFFIC {
        timing.step().await;
        let session = running.waiter(name, statement).await?;
        running.facts.wait_for(session.pid, Vec::new(), vec![migration.pid]);
    }
    Ok(running)
}

/// Effects of a table's wait queue: a waiter can block, and a holder may not.
///
/// A reader holds a lock, a statement that needs the table exclusively waits for it, and another reader waits only for
/// that statement: the two readers would not conflict.
pub(super) async fn ddl(scratch: &ScratchSchema) -> Result<Running, DemoError> {
    let mut running = table(scratch, "customers").await?;
    let reader = running.root("report-bi", "SELECT count(*) FROM customers").await?;
    let migration = running.waiter("deploy-ci", "ALTER TABLE customers ADD COLUMN note text").await?;
    running.facts.wait(migration.pid, reader.pid);
    let late = running.waiter("web-1", "SELECT name FROM customers WHERE id = 1").await?;
    running.facts.wait_for(late.pid, Vec::new(), vec![migration.pid]);
    Ok(running)
}

/// One session reads a table, another writes to it, both idle in transaction. Creating an index waits only for the
/// writer.
pub(super) async fn innocent(scratch: &ScratchSchema) -> Result<Running, DemoError> {
    let mut running = table(scratch, "products").await?;
    let reader = running.begin("report-bi", "SELECT count(*) FROM products").await?;
    running.facts.innocent.push(reader.pid);
    let writer = running.root("import-cron", "UPDATE products SET name = 'x' WHERE id = 1").await?;
    let index = running.waiter("deploy-ci", "CREATE INDEX ON products (name)").await?;
    running.facts.wait(index.pid, writer.pid);
    Ok(running)
}

async fn table(scratch: &ScratchSchema, name: &str) -> Result<Running, DemoError> {
    let make = format!(
        "CREATE TABLE {name} (id int PRIMARY KEY, name text NOT NULL);
         INSERT INTO {name} SELECT id, 'name ' || id FROM generate_series(1, 20) id"
    );
    Running::with_table(scratch, name, &make).await
}

const GIDS: [&str; 2] = ["invoice_1", "invoice_2"];

/// Two prepared transactions, which belong to no process, block three sessions.
pub(super) async fn prepared(scratch: &ScratchSchema) -> Result<Running, DemoError> {
    let table = "DROP TABLE IF EXISTS invoices;
        CREATE TABLE invoices (id int PRIMARY KEY, paid bool NOT NULL);
        INSERT INTO invoices VALUES (1, false), (2, false)";
    scratch.run(table).await?;
    // Gids are unique in a cluster, not per database.
    let database = scratch.texts("SELECT current_database()::text").await?.concat();
    let gids = GIDS.map(|gid| format!("{gid}_{database}"));
    let pay = |id: usize| format!("UPDATE invoices SET paid = true WHERE id = {id}");

    let mut running = Running::new(scratch);
    running.release = Release::End;
    for (number, gid) in (1..).zip(&gids) {
        let session = running.begin("ledger", &pay(number)).await?;
        running.cleanup.push(format!("ROLLBACK PREPARED '{gid}'"));
        session.run(&format!("PREPARE TRANSACTION '{gid}'")).await?;
        running.facts.roots.push(Blocker::Prepared(gid.clone()));
    }
    running.cleanup.push("DROP TABLE IF EXISTS invoices".to_owned());

    let mut holders = running.facts.roots.clone();
    for (number, root) in (1..).zip(running.facts.roots.clone()) {
        let session = running.waiter("billing", &pay(number)).await?;
        running.facts.wait_for(session.pid, vec![root], Vec::new());
        // It holds the table's lock for writing, and waits for the row.
        holders.push(Blocker::Backend(session.pid));
    }
    let migration = running.waiter("deploy-ci", "ALTER TABLE invoices ADD COLUMN note text").await?;
    running.facts.wait_for(migration.pid, holders, Vec::new());
    Ok(running)
}

/// Makes the planner use workers even for a small table.
const EAGER: &str =
    "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
    SET max_parallel_workers_per_gather = 3";

/// A parallel query blocks: its workers hold the same lock, and do not count as blockers.
pub(super) async fn parallel(scratch: &ScratchSchema) -> Result<Running, DemoError> {
    let table =
        "CREATE TABLE measurements (id int, filler text) WITH (parallel_workers = 3, fillfactor = 10);
        INSERT INTO measurements SELECT id, repeat('x', 500) FROM generate_series(1, 200) id;
        ANALYZE measurements";
    let mut running = Running::with_table(scratch, "measurements", table).await?;
    let leader = running.open("analytics").await?;
    leader.run(EAGER).await?;
    // Every process of the query sleeps at its first row.
    running
        .tasks
        .push(leader.send("SELECT count(*) FROM measurements WHERE pg_sleep(3600 + id) IS NOT NULL"));
    let at_work = "SELECT count(*) >= 3 FROM pg_locks
        WHERE granted AND relation = 'measurements'::regclass
        AND pid IN (SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[]) OR leader_pid = ANY ($1::int[]))";
    scratch.until("a parallel query to have two workers", at_work, &[leader.pid]).await?;
    running.facts.roots.push(Blocker::Backend(leader.pid));
    let workers = "SELECT pid FROM pg_stat_activity WHERE leader_pid = ANY ($1::int[])";
    running.facts.innocent = scratch.numbers(workers, &[leader.pid]).await?;
    let migration = running.waiter("deploy-ci", "ALTER TABLE measurements ADD COLUMN note text").await?;
    running.facts.wait(migration.pid, leader.pid);
    Ok(running)
}

/// A table in another database, with a holder and a waiter: a session that is not connected there sees only numbers.
pub(super) async fn other_database(scratch: &ScratchSchema) -> Result<Running, DemoError> {
    let database = scratch.texts("SELECT current_database() || '_other'").await?.concat();
    let quoted = database.replace('"', "\"\"");
    let drop = format!("DROP DATABASE IF EXISTS \"{quoted}\" WITH (FORCE)");
    scratch.run(&drop).await?;
    scratch.run(&format!("CREATE DATABASE \"{quoted}\"")).await?;
    let mut running = Running::new(scratch);
    running.cleanup.push(drop);
    let holder = scratch.session_in(&database, "billing").await?;
    running.sessions.push(holder.clone());
    holder.run("CREATE TABLE payments (id int)").await?;
    holder.run("BEGIN; LOCK TABLE payments IN ACCESS EXCLUSIVE MODE").await?;
    running.facts.roots.push(Blocker::Backend(holder.pid));
    let waiter = scratch.session_in(&database, "web-1").await?;
    running.sessions.push(waiter.clone());
    running.wait(&waiter, "SELECT count(*) FROM payments").await?;
    running.facts.wait(waiter.pid, holder.pid);
    Ok(running)
}
