use futures_util::{StreamExt, stream};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::scratch::{ScratchSchema, Session};
use super::{Blocker, Release, Running, Timing, Wait};
use crate::DemoError;

const AT_ONCE: usize = 16;
/// Connections needed in addition to the waiters: the schema's own, the holders, and observers.
const SPARE: usize = 40;
const LOCK_HOLDERS: usize = 4;

#[derive(Debug, Clone, Copy)]
pub struct AdvisoryContention {
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
    pub async fn start(self, scratch: &ScratchSchema) -> Result<Running, DemoError> {
        allow_open_files(self.waiters + LOCK_HOLDERS + SPARE);
        let mut running = Running::new(scratch);
        let holder = if self.in_transaction {
            running.begin("scheduler-1", "SELECT pg_advisory_xact_lock(1)").await?
        } else {
            let holder = running.open("scheduler-1").await?;
            holder.run("SELECT pg_advisory_lock(1)").await?;
            holder
        };
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
    ) -> Result<(), DemoError> {
        let mut arrivals = stream::iter(0..self.waiters)
            .map(async |number| {
                let session = scratch.session(&format!("worker-{}", number + 1)).await?;
                let task = session.send("SELECT pg_advisory_lock(1)");
                Ok::<_, DemoError>((session, task))
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

pub const PAYOUT_KEY: (i32, i32) = (CLASS, 2);

const WAITERS: [&str; 2] = ["export-1", "export-2"];

/// An idle session holds an advisory lock, and two others wait for it.
pub(super) async fn session_lock(scratch: &ScratchSchema) -> Result<Running, DemoError> {
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
        running.facts.wait_for(session.pid, vec![root.clone()], ahead.clone());
        ahead.push(session.pid);
    }
    Ok(running)
}

/// The waiters, in order: each holds an account's row and wants the one before.
const ROW_WAITERS: [&str; 12] = [
    "web-1",
    "web-4",
    "billing-cron",
    "web-2",
    "payout-worker-1",
    "payout-worker-2",
    "web-3",
    "api-7",
    "mailer",
    "web-5",
    "fraud-check",
    "api-2",
];

/// The waiter that waits for an advisory lock instead of a row.
const ADVISORY: usize = 5;

/// Twelve sessions, each waiting for the one before, below a transaction that was left open.
pub(super) async fn chain(scratch: &ScratchSchema, timing: Timing) -> Result<Running, DemoError> {
    let table = "CREATE TABLE accounts (id int PRIMARY KEY, balance numeric NOT NULL) WITH (fillfactor = 50);
        INSERT INTO accounts SELECT id, 1000 FROM generate_series(1, 20) id";
    let mut running = Running::with_table(scratch, "accounts", table).await?;
    running.release = Release::Commit;
    let root = running.root("psql-anna", "UPDATE accounts SET balance = balance - 250 WHERE id = 1").await?;
    let lock_payout = format!("SELECT pg_advisory_xact_lock({}, {})", PAYOUT_KEY.0, PAYOUT_KEY.1);
    let mut before = root;
    for (index, name) in ROW_WAITERS.into_iter().enumerate() {
        timing.step().await;
        let row = index + 1;
        let own = format!("UPDATE accounts SET balance = balance - 20 WHERE id = {}", row + 1);
        let session = running.begin(name, &own).await?;
        if index + 1 == ADVISORY {
            session.run(&lock_payout).await?;
        }
        let wanted = if index == ADVISORY {
            lock_payout.clone()
        } else {
            format!("UPDATE accounts SET balance = balance + 20 WHERE id = {row}")
        };
        running.tasks.push(session.send_and_commit(wanted, timing.step, "COMMIT"));
        scratch.waiting(&[session.pid]).await?;
        running.facts.wait(session.pid, before.pid);
        before = session;
    }
    Ok(running)
}

/// Two sessions that wait for each other, until the server's deadlock check aborts one of them.
pub(super) async fn deadlock(scratch: &ScratchSchema, timing: Timing) -> Result<Running, DemoError> {
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

/// Two rows of one table, each with a queue of its own.
///
/// For each row: one session has changed it, the second waits for the first one's transaction and meanwhile holds the
/// row's tuple lock, and the third waits for that tuple lock. No session waits for one at the other row, although the
/// tuple locks differ only in the row's location.
pub(super) async fn tuples(scratch: &ScratchSchema) -> Result<Running, DemoError> {
    let table = "CREATE TABLE seats (id int PRIMARY KEY, taken int NOT NULL);
        INSERT INTO seats VALUES (1, 0), (2, 0)";
    let mut running = Running::with_table(scratch, "seats", table).await?;
    for row in [1, 2] {
        let take = format!("UPDATE seats SET taken = taken + 1 WHERE id = {row}");
        let mut before = running.root(&format!("booking-{row}a"), &take).await?;
        for suffix in ["b", "c"] {
            let session = running.waiter(&format!("booking-{row}{suffix}"), &take).await?;
            running.facts.wait(session.pid, before.pid);
            before = session;
        }
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
