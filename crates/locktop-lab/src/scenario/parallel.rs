//! A parallel query blocks: its workers hold the same lock, and do not count as blockers.

use super::error::ScenarioError;
use super::running::{Blocker, Running};
use super::scratch::ScratchSchema;

/// Makes the planner use workers even for a small table.
const EAGER: &str =
    "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
    SET max_parallel_workers_per_gather = 3";

pub(super) async fn start(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
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
    let migration = running.open("deploy-ci").await?;
    running.wait(&migration, "ALTER TABLE measurements ADD COLUMN note text").await?;
    running.facts.wait(migration.pid, leader.pid);
    Ok(running)
}
