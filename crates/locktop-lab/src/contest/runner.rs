//! Runs a contest: starts its workers, replaces processes that ended, injects faults, and ends them all.

use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Error};

use super::faults::{FaultPlan, FaultRecord, FaultState, inject_faults, wake_all};
use super::{AnyRules, ContestOutcome, Environment, PAUSE, Rules, count, lock};
use crate::DemoError;
use crate::workers::{WorkerPool, WorkerRole};
use locktop_base::clock;
use locktop_locks::Error as LockError;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

const WATCH: Duration = Duration::from_millis(50);
const POLL: Duration = Duration::from_millis(20);
/// How long resumed workers have to notice their loss, and all workers to end.
const WAKE_TIMEOUT: Duration = Duration::from_secs(3);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) faults: FaultRecord,
    processes: u64,
    lost_workers: u64,
    errors: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) over: bool,
}

impl Report {
    /// The numbers of those names that are among `keys`.
    pub(crate) fn numbers(&self, keys: &[&str]) -> impl Iterator<Item = (String, u64)> {
        let Self { faults, processes, lost_workers, errors, .. } = self;
        let all = [
            ("kills", faults.kills),
            ("stops", count(faults.pauses.len())),
            ("overslept", faults.overslept),
            ("cuts", faults.cuts),
            ("processes", *processes),
            ("lost_workers", *lost_workers),
            ("errors", *errors),
        ];
        all.into_iter().filter(|(key, _)| keys.contains(key)).map(|(key, number)| (key.to_owned(), number))
    }
}

#[derive(Debug, Default)]
struct Failures(Mutex<(u64, Option<String>)>);

impl Failures {
    fn note(&self, error: &dyn Display) {
        let (count, first) = &mut *lock(&self.0);
        *count += 1;
        first.get_or_insert_with(|| error.to_string());
    }
}

/// A running contest. Dropping it ends its workers at once.
#[derive(Debug)]
pub(crate) struct Runner {
    rules: Arc<dyn AnyRules>,
    processes: Option<Arc<FaultState>>,
    failures: Arc<Failures>,
    loops: JoinSet<()>,
    quit: watch::Sender<bool>,
    over: bool,
}

impl Runner {
    /// A contest without workers: [`Self::processes`] or [`Self::sessions`] starts them.
    pub(crate) fn new(rules: Arc<impl Rules>) -> Self {
        Self {
            rules,
            processes: None,
            failures: Arc::default(),
            loops: JoinSet::new(),
            quit: watch::Sender::new(false),
            over: false,
        }
    }

    pub(crate) fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let mut quit = self.quit.subscribe();
        self.loops.spawn(async move {
            tokio::select! {
                () = work => {}
                _ = quit.wait_for(|quit| *quit) => {}
            }
        });
    }

    /// Runs `work`, which returns soon after it is requested to end.
    pub(crate) fn spawn_until<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        work: impl FnOnce(watch::Receiver<bool>) -> F,
    ) {
        self.loops.spawn(work(self.quit.subscribe()));
    }

    pub(crate) fn processes(
        mut self,
        environment: &Environment,
        name: &str,
        role: WorkerRole,
        count: usize,
        faults: FaultPlan,
    ) -> Result<Self, DemoError> {
        let mut config = environment.config.clone();
        (config.worker, config.role) = (name.to_owned(), role);
        let mut pool = WorkerPool::new(environment.options.program.clone(), config, count);
        pool.fill().map_err(DemoError::cannot("start a worker process"))?;
        let state = Arc::new(FaultState {
            info: environment.info.clone().with_application_name(&format!("locktop demo {name}s")),
            seed: environment.options.seed,
            faults,
            question: environment.options.question.clone(),
            pool: Mutex::new(pool),
            record: Mutex::default(),
        });
        self.spawn(watch(Arc::clone(&state)));
        self.spawn(inject_faults(Arc::clone(&state)));
        self.processes = Some(state);
        Ok(self)
    }

    /// Starts sessions of this process that take turns.
    pub(super) fn sessions<W: SessionWork>(environment: &Environment, work: W, count: usize) -> Self {
        let work = Arc::new(work);
        let mut runner = Self::new(Arc::clone(&work));
        for number in 0..count {
            let name = format!("{}-{}", W::NAME, number + 1);
            let seed = environment.options.seed ^ u64::try_from(number << 8 | W::NAME.len()).unwrap_or(0);
            let info = environment.info.clone().with_application_name(&name);
            let (work, failures) = (Arc::clone(&work), Arc::clone(&runner.failures));
            runner.spawn_until(|quit| take_turns(work, (number, Rng::with_seed(seed)), info, failures, quit));
        }
        runner
    }

    pub(crate) fn redis(&self) -> Vec<Vec<String>> {
        self.rules.redis()
    }

    pub(crate) async fn count(&self, client: &Client) -> Result<ContestOutcome, Error> {
        let (errors, first_error) = lock(&self.failures.0).clone();
        let mut report = Report { errors, first_error, over: self.over, ..Report::default() };
        if let Some(state) = &self.processes {
            report.faults = state.record().clone();
            let pool = state.pool();
            (report.processes, report.lost_workers) = (pool.started(), pool.lost);
            report.first_error.clone_from(&pool.first_error);
        }
        self.rules.count(client, &report).await
    }

    /// Resumes paused workers, lets them notice their loss and finish current work, stops all, and kills those that do not
    /// end.
    pub(crate) async fn finish(&mut self) {
        self.quit.send_replace(true);
        // A loop that panicked has ended too.
        while self.loops.join_next().await.is_some() {}
        if let Some(state) = &self.processes {
            // Without a server no worker can notice anything.
            let _ = settle(state).await;
            state.pool().shut_down();
            let start = clock::monotonic();
            while !state.pool().has_ended() && start.elapsed() < SHUTDOWN_TIMEOUT {
                tokio::time::sleep(POLL).await;
            }
            state.pool().end();
        }
        self.rules.settle().await;
        self.over = true;
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.loops.abort_all();
        if let Some(state) = &self.processes {
            state.pool().end();
        }
    }
}

async fn watch(state: Arc<FaultState>) {
    loop {
        // A worker that cannot be started now may be later.
        let _ = state.pool().fill();
        tokio::time::sleep(WATCH).await;
    }
}

/// Resumes paused workers, and waits until they have noticed their loss.
async fn settle(state: &FaultState) -> Result<(), Error> {
    let Some(client) = state.connect().await else { return Ok(()) };
    let woken = wake_all(state, &client).await?;
    let Some(unnoticed) = state.faults.unnoticed.as_ref().filter(|_| !woken.is_empty()) else {
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

pub(super) trait SessionWork: Rules {
    const NAME: &'static str;
    /// Longest pause between two turns, in milliseconds.
    const LONGEST: u64;

    fn attempt(
        &self,
        session: usize,
        client: &Client,
        random: &mut Rng,
    ) -> impl Future<Output = Result<(), LockError>> + Send;
}

/// Takes turns until it is requested to end; a lost connection is reopened.
async fn take_turns<W: SessionWork>(
    work: Arc<W>,
    (number, mut random): (usize, Rng),
    info: ConnInfo,
    failures: Arc<Failures>,
    mut quit: watch::Receiver<bool>,
) {
    while !*quit.borrow() {
        match connect(&info).await {
            Ok(connection) => {
                while !*quit.borrow() && !connection.client.is_closed() {
                    if let Err(error) = work.attempt(number, &connection.client, &mut random).await {
                        failures.note(&error);
                    }
                    tokio::time::sleep(Duration::from_millis(random.u64(..W::LONGEST))).await;
                }
            }
            Err(error) => failures.note(&error),
        }
        let _ = tokio::time::timeout(PAUSE, quit.wait_for(|quit| *quit)).await;
    }
}
