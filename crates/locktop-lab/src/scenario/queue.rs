//! Effects of a table's wait queue: a waiter can block, and a holder may not.

use super::error::ScenarioError;
use super::running::{Blocker, Running, Wait};
use super::scratch::ScratchSchema;
use super::session::Session;

/// A reader holds a lock, a statement that needs the table exclusively waits for it, and another reader waits only for
/// that statement: the two readers would not conflict.
pub(super) async fn ddl(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
    let mut running = table(scratch, "customers").await?;
    let reader = running.begin("report-bi", "SELECT count(*) FROM customers").await?;
    running.facts.roots.push(Blocker::Backend(reader.pid));
    let migration = running.open("deploy-ci").await?;
    running.wait(&migration, "ALTER TABLE customers ADD COLUMN note text").await?;
    running.facts.wait(migration.pid, reader.pid);
    let late = running.open("web-1").await?;
    running.wait(&late, "SELECT name FROM customers WHERE id = 1").await?;
    behind(&mut running, &late, &migration);
    Ok(running)
}

fn behind(running: &mut Running, waiter: &Session, ahead: &Session) {
    let wait = Wait { waiter: waiter.pid, holders: Vec::new(), ahead: Some(vec![ahead.pid]) };
    running.facts.waits.push(wait);
}

/// One session reads a table, another writes to it, both idle in transaction. Creating an index waits only for the
/// writer.
pub(super) async fn innocent(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
    let mut running = table(scratch, "products").await?;
    let reader = running.begin("report-bi", "SELECT count(*) FROM products").await?;
    running.facts.innocent.push(reader.pid);
    let writer = running.begin("import-cron", "UPDATE products SET name = 'x' WHERE id = 1").await?;
    running.facts.roots.push(Blocker::Backend(writer.pid));
    let index = running.open("deploy-ci").await?;
    running.wait(&index, "CREATE INDEX ON products (name)").await?;
    running.facts.wait(index.pid, writer.pid);
    Ok(running)
}

async fn table(scratch: &ScratchSchema, name: &str) -> Result<Running, ScenarioError> {
    let make = format!(
        "CREATE TABLE {name} (id int PRIMARY KEY, name text NOT NULL);
         INSERT INTO {name} SELECT id, 'name ' || id FROM generate_series(1, 20) id"
    );
    Running::with_table(scratch, name, &make).await
}
