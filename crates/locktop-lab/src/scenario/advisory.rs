use futures_util::{StreamExt, stream};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::ScenarioError;
use super::running::{Blocker, Release, Running, Wait};
use super::scratch::ScratchSchema;
use super::scratch::Session;

const AT_ONCE: usize = 16;
/// Connections needed in addition to the waiters: the schema's own, the holders, and observers.
const SPARE: usize = 40;
/// Sessions that share the additional locks.
const LOCK_HOLDERS: usize = 4;

#[derive(Debug, Clone, Copy)]
pub struct AdvisoryContention {
    /// Sessions that wait for the lock.
    pub waiters: usize,
    /// How many other advisory locks are held, by four idle sessions.
    pub locks: usize,
    /// The holder holds the lock to the end of its transaction; otherwise it is idle and holds it to the end of its session.
    pub in_transaction: bool,
}

impl Default for AdvisoryContention {
    fn default() -> Self {
        Self { waiters: 200, locks: 0, in_transaction: false }
    }
}

impl AdvisoryContention {
    #[must_use]
    pub fn settings(self) -> Vec<(String, String)> {
        let connections = self.waiters + LOCK_HOLDERS + SPARE;
        // The lock table has room for `max_locks_per_transaction * max_connections` locks.
        let per_connection = ((self.locks + self.waiters) * 5 / 4).div_ceil(connections).max(64);
        [("max_connections", connections), ("max_locks_per_transaction", per_connection)]
            .map(|(name, value)| (name.to_owned(), value.to_string()))
            .into()
    }

    /// Builds it, and returns once all sessions wait.
    ///
    /// # Errors
    /// If the server has too few connections (see [`Self::settings`]) or refuses a statement.
    pub async fn start(self, scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
        allow_open_files(self.waiters + LOCK_HOLDERS + SPARE);
        let mut running = Running::new(scratch);
        let holder = if self.in_transaction {
            running.begin("scheduler-1", "SELECT pg_advisory_xact_lock(1)").await?
        } else {
            running.open("scheduler-1").await?
        };
        if !self.in_transaction {
            holder.run("SELECT pg_advisory_lock(1)").await?;
        }
        running.facts.roots.push(Blocker::Backend(holder.pid));
        for keeper in 0..LOCK_HOLDERS.min(self.locks) {
            let session = running.open(&format!("keeper-{}", keeper + 1)).await?;
            let take = format!(
                "SELECT count(pg_advisory_lock(2, key)) FROM generate_series({}, {}, {LOCK_HOLDERS}) key",
                keeper + 1,
                self.locks
            );
            session.run(&take).await?;
        }
        self.add_waiters(scratch, &mut running, &holder).await?;
        Ok(running)
    }

    async fn add_waiters(
        self,
        scratch: &ScratchSchema,
        running: &mut Running,
        holder: &Session,
    ) -> Result<(), ScenarioError> {
        let mut arrivals = stream::iter(0..self.waiters)
            .map(async |number| {
                let session = scratch.session(&format!("worker-{}", number + 1)).await?;
                let task = session.send("SELECT pg_advisory_lock(1)");
                Ok::<_, ScenarioError>((session, task))
            })
            .buffer_unordered(AT_ONCE);
        let mut pids = Vec::with_capacity(self.waiters);
        while let Some(arrival) = arrivals.next().await {
            let (session, task) = arrival?;
            pids.push(session.pid);
            let holders = vec![Blocker::Backend(holder.pid)];
            running.facts.waits.push(Wait { waiter: session.pid, holders, ahead: None });
            running.sessions.push(session);
            running.tasks.push(task);
        }
        scratch.waiting(&pids).await
    }
}

/// Ensures that this process may open `more` more files, as far as the system allows: the usual limit of 1,024 is less
/// than 1,000 sessions need.
fn allow_open_files(more: usize) {
    let limit = getrlimit(Resource::Nofile);
    // A generous allowance for the other open files of the process.
    let wanted = u64::try_from(more).unwrap_or(u64::MAX).saturating_add(512);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        // Without it, opening the sessions fails and reports why.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
}

/// The first number of the demo's keys, which no other software uses.
const CLASS: i32 = 0x6c6b_7470;

pub const EXPORT_KEY: (i32, i32) = (CLASS, 1);

/// The key of the advisory lock in the chain.
pub const PAYOUT_KEY: (i32, i32) = (CLASS, 2);

const WAITERS: [&str; 2] = ["export-1", "export-2"];

/// An idle session holds an advisory lock, and two others wait for it.
pub(super) async fn session_lock(scratch: &ScratchSchema) -> Result<Running, ScenarioError> {
    let lock = format!("SELECT pg_advisory_lock({}, {})", EXPORT_KEY.0, EXPORT_KEY.1);
    let mut running = Running::new(scratch);
    running.release = Release::End;
    let holder = running.open("nightly-export").await?;
    holder.run(&lock).await?;
    let root = Blocker::Backend(holder.pid);
    running.facts.roots.push(root.clone());
    let mut ahead = Vec::new();
    for name in WAITERS {
        let session = running.waiter(name, &lock).await?;
        let wait = Wait { waiter: session.pid, holders: vec![root.clone()], ahead: Some(ahead.clone()) };
        running.facts.waits.push(wait);
        ahead.push(session.pid);
    }
    Ok(running)
}

#[cfg(test)]
mod tests {
    use super::AdvisoryContention;

    #[test]
    fn the_settings_make_room_for_all_locks() {
        for (waiters, locks) in [(0, 0), (200, 0), (1_000, 22_000), (2_000, 44_000)] {
            let settings = AdvisoryContention { waiters, locks, in_transaction: false }.settings();
            let number = |wanted: &str| -> usize {
                settings.iter().find(|(name, _)| name == wanted).unwrap().1.parse().unwrap()
            };
            let room = number("max_connections") * number("max_locks_per_transaction");
            assert!(room > locks + waiters, "{waiters} {locks}: {room}");
            assert!(number("max_connections") > waiters);
        }
    }
}
