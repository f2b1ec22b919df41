//! Runs a contest of processes: starts them, replaces those that ended, injects faults, and ends them all.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Error;

use super::Environment;
use super::faults::{FaultPlan, FaultRecord, RunnerState, inject_faults, wake_all};
use crate::workers::{TasksError, WorkerPool, WorkerRole};
use locktop_base::clock;

const WATCH: Duration = Duration::from_millis(50);
const POLL: Duration = Duration::from_millis(20);
/// How long resumed workers have to notice their loss, and all workers to end.
const WAKE_TIMEOUT: Duration = Duration::from_secs(3);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Runner {
    state: Arc<RunnerState>,
    loops: Vec<JoinHandle<()>>,
}

impl Runner {
    pub(crate) fn begin(
        environment: &Environment,
        name: &str,
        role: WorkerRole,
        count: usize,
        faults: FaultPlan,
    ) -> Result<Self, TasksError> {
        let mut config = environment.config.clone();
        (config.worker, config.role) = (name.to_owned(), role);
        let mut pool = WorkerPool::new(environment.program.clone(), config, count);
        pool.fill()?;
        let info = environment.info.clone().with_application_name(&format!("locktop demo {name}s"));
        let state =
            Arc::new(RunnerState::new(info, environment.seed, faults, environment.question.clone(), pool));
        let loops =
            vec![tokio::spawn(watch(Arc::clone(&state))), tokio::spawn(inject_faults(Arc::clone(&state)))];
        Ok(Self { state, loops })
    }

    pub(crate) fn record(&self) -> FaultRecord {
        self.state.record().clone()
    }

    pub(crate) fn processes(&self) -> (u64, u64) {
        let pool = self.state.pool();
        (pool.started(), pool.lost)
    }

    pub(crate) fn first_error(&self) -> Option<String> {
        self.state.pool().first_error.clone()
    }

    /// Resumes paused workers, lets them notice their loss, stops all, and kills those that do not end.
    pub(crate) async fn finish(&mut self) {
        for task in self.loops.drain(..) {
            task.abort();
            let _ = task.await;
        }
        // Without a server no worker can notice anything.
        let _ = self.settle().await;
        self.state.pool().shut_down();
        let start = clock::monotonic();
        while !self.state.pool().is_gone() && start.elapsed() < SHUTDOWN_TIMEOUT {
            tokio::time::sleep(POLL).await;
        }
        self.state.pool().end();
    }

    async fn settle(&self) -> Result<(), Error> {
        let Some(client) = self.state.connect().await else { return Ok(()) };
        let woken = wake_all(&self.state, &client).await?;
        let Some(unnoticed) = self.state.faults.unnoticed.as_ref().filter(|_| !woken.is_empty()) else {
            return Ok(());
        };
        let start = clock::monotonic();
        while start.elapsed() < WAKE_TIMEOUT
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
        self.state.pool().end();
    }
}

async fn watch(state: Arc<RunnerState>) {
    loop {
        // A worker that cannot be started now may be later.
        let _ = state.pool().fill();
        tokio::time::sleep(WATCH).await;
    }
}
