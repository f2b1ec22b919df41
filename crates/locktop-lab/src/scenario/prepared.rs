//! Two prepared transactions, which belong to no process, block three sessions.

use super::error::ScenarioError;
use super::running::{Blocker, Release, Running, Wait};
use super::scratch::ScratchSchema;

const GIDS: [&str; 2] = ["invoice_1", "invoice_2"];

pub(super) async fn start(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
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
        let session = running.open("billing").await?;
        running.wait(&session, &pay(number)).await?;
        let wait = Wait { waiter: session.pid, holders: vec![root], ahead: Some(Vec::new()) };
        running.facts.waits.push(wait);
        // It holds the table's lock for writing, and waits for the row.
        holders.push(Blocker::Backend(session.pid));
    }
    let migration = running.open("deploy-ci").await?;
    running.wait(&migration, "ALTER TABLE invoices ADD COLUMN note text").await?;
    running.facts.waits.push(Wait { waiter: migration.pid, holders, ahead: Some(Vec::new()) });
    Ok(running)
}
