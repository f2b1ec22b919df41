//! Runs a contest of processes: they compete, those that ended are replaced, faults befall them, and in the end all go.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Error;

use super::faults::{Faults, Record, Shared, inject_faults, wake_all};
use super::game::Place;
use crate::workers::{Part, TasksError, WorkerPool};
use locktop_base::clock;

/// How often a process that ended is looked for.
const WATCH: Duration = Duration::from_millis(50);
const POLL: Duration = Duration::from_millis(20);
/// How long those that were just woken have for noticing, and all for ending.
const AWAKENING: Duration = Duration::from_secs(3);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The processes, and what befalls them. Dropping it ends them at once.
#[derive(Debug)]
pub(crate) struct Runner {
    shared: Arc<Shared>,
    loops: Vec<JoinHandle<()>>,
}

impl Runner {
    /// Starts so many processes, called `name-1` and so on.
    pub(crate) fn begin(
        place: &Place,
        name: &str,
        part: Part,
        count: usize,
        faults: Faults,
    ) -> Result<Self, TasksError> {
        let mut orders = place.orders.clone();
        (orders.worker, orders.part) = (name.to_owned(), part);
        let mut pool = WorkerPool::new(place.program.clone(), orders, count);
        pool.fill()?;
        let info = place.info.clone().with_application_name(&format!("locktop demo {name}s"));
        let shared = Arc::new(Shared::new(info, place.seed, faults, place.audience.clone(), pool));
        let loops =
            vec![tokio::spawn(watch(Arc::clone(&shared))), tokio::spawn(inject_faults(Arc::clone(&shared)))];
        Ok(Self { shared, loops })
    }

    /// What was done to them.
    pub(crate) fn record(&self) -> Record {
        self.shared.record().clone()
    }

    /// How many were started, and how many ended without being told to.
    pub(crate) fn processes(&self) -> (u64, u64) {
        let pool = self.shared.pool();
        (pool.started(), pool.lost)
    }

    /// What the first that ended by itself said.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.shared.pool().complaint.clone()
    }

    /// Wakes those that stand still, lets them notice, tells all to end, and kills who does not.
    pub(crate) async fn finish(&mut self) {
        for part in self.loops.drain(..) {
            part.abort();
            let _ = part.await;
        }
        // Without a server nobody can notice anything.
        let _ = self.settle().await;
        self.shared.pool().dismiss();
        let start = clock::monotonic();
        while !self.shared.pool().is_gone() && start.elapsed() < SHUTDOWN_TIMEOUT {
            tokio::time::sleep(POLL).await;
        }
        self.shared.pool().end();
    }

    /// Wakes those that stand still, and gives them the time to notice what they have lost.
    async fn settle(&self) -> Result<(), Error> {
        let Some(client) = self.shared.connect().await else { return Ok(()) };
        let woken = wake_all(&self.shared, &client).await?;
        let Some(unnoticed) = self.shared.faults.unnoticed.as_ref().filter(|_| !woken.is_empty()) else {
            return Ok(());
        };
        let start = clock::monotonic();
        while start.elapsed() < AWAKENING
            && client.query_one(unnoticed, &[&woken]).await?.try_get::<_, i64>(0)? > 0
        {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.loops.iter().for_each(JoinHandle::abort);
        self.shared.pool().end();
    }
}

/// Replaces those that have ended.
async fn watch(shared: Arc<Shared>) {
    loop {
        // One that cannot be started now may be later.
        let _ = shared.pool().fill();
        tokio::time::sleep(WATCH).await;
    }
}
