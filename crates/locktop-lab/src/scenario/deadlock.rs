//! Two sessions that wait for each other, until the server's deadlock check aborts one of them.

use super::error::ScenarioError;
use super::running::{Running, Timing};
use super::scratch::ScratchSchema;

pub(super) async fn start(scratch: &ScratchSchema, timing: Timing) -> Result<Running, ScenarioError> {
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
