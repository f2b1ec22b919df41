//! A table in another database, with a holder and a waiter: a session that is not connected there sees only numbers.

use super::error::ScenarioError;
use super::running::{Blocker, Running};
use super::scratch::ScratchSchema;

pub(super) async fn start(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
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
