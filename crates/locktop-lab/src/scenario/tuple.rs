//! Two rows of one table, each with a queue of its own.

use super::error::ScenarioError;
use super::running::{Blocker, Running};
use super::scratch::ScratchSchema;

/// For each row: one session has changed it, the second waits for the first one's transaction and meanwhile holds the
/// row's tuple lock, and the third waits for that tuple lock. No session waits for one at the other row, although the
/// tuple locks differ only in the row's location.
pub(super) async fn start(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
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
