//! An idle session holds an advisory lock, and two others wait for it.

use super::error::ScenarioError;
use super::running::{Blocker, Release, Running, Wait};
use super::scratch::ScratchSchema;

/// The first number of the demo's keys, which no other software uses.
const CLASS: i32 = 0x6c6b_7470;

pub const EXPORT_KEY: (i32, i32) = (CLASS, 1);

/// The key of the advisory lock in the chain.
pub const PAYOUT_KEY: (i32, i32) = (CLASS, 2);

const WAITERS: [&str; 2] = ["export-1", "export-2"];

pub(super) async fn start(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
    let lock = format!("SELECT pg_advisory_lock({}, {})", EXPORT_KEY.0, EXPORT_KEY.1);
    let mut running = Running::new(scratch);
    running.release = Release::End;
    let holder = running.open("nightly-export").await?;
    holder.run(&lock).await?;
    let root = Blocker::Backend(holder.pid);
    running.facts.roots.push(root.clone());
    let mut ahead = Vec::new();
    for name in WAITERS {
        let session = running.open(name).await?;
        running.wait(&session, &lock).await?;
        let wait = Wait { waiter: session.pid, holders: vec![root.clone()], ahead: Some(ahead.clone()) };
        running.facts.waits.push(wait);
        ahead.push(session.pid);
    }
    Ok(running)
}
