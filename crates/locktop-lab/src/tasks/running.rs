//! All contests that run in one schema of the demo's own, including the tasks: their preparation, and how they end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use locktop_base::{Timestamp, clock};
use locktop_tasks::actor::Actor;
use locktop_tasks::recovery::{self, Order, Request, RunState, Running, Selection};
use locktop_tasks::schema::{SchemaError, SchemaName};
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;
use tokio_postgres::Client;

use super::tables::{TASKS_SCHEMA, TaskTables};
use super::{Outcome, TaskContest, TasksError, TasksOptions};
use crate::contest::{Environment, PAUSE, Runner};
use crate::workers::{WorkerConfig, WorkerRole};

/// The settings of the sessions: when an execution is an orphan, and the search path for a recipe's functions.
fn settings(info: &ConnInfo, schema: &SchemaName, options: &TasksOptions, grace: f64) -> ConnInfo {
    let grace = format!("{}ms", (grace * 1_000.0).round());
    let info = info.clone().with_setting("locktop.orphan_grace", &grace);
    if options.recipe.is_none() {
        return info;
    }
    info.with_setting("search_path", &format!("{},public", schema.as_str()))
}

#[derive(Debug)]
pub struct PreparedContests {
    info: ConnInfo,
    tables: TaskTables,
    client: Client,
    options: TasksOptions,
}

impl PreparedContests {
    /// Creates the schema, which must not exist. `embedded`: the server is the demo's own.
    pub async fn create(info: &ConnInfo, embedded: bool, options: TasksOptions) -> Result<Self, TasksError> {
        let name =
            if embedded { SchemaName::default() } else { SchemaName::new(TASKS_SCHEMA).unwrap_or_default() };
        let tables = TaskTables {
            info: settings(info, &name, &options, options.orphan_grace()),
            schema: name,
            recipe: options.recipe.is_some(),
        };
        let client = tables.create(options.recipe.as_deref()).await?;
        Ok(Self { info: info.clone(), tables, client, options })
    }

    /// Inserts the tasks and starts the workers. If that fails, the schema is removed.
    pub async fn start(self) -> Result<RunningContests, TasksError> {
        let tables = self.tables.clone();
        match self.begin().await {
            Ok(contests) => Ok(contests),
            Err(error) => {
                // The first error is the one to report.
                let _ = remove(&tables).await;
                Err(error)
            }
        }
    }

    async fn begin(self) -> Result<RunningContests, TasksError> {
        let Self { info, tables, client, options } = self;
        tables.make_witness_table(&client).await?;
        let plan = options.plan();
        tables.insert_tasks(&client, &plan).await?;
        let workers = settings(&info, &tables.schema, &options, options.takeover());
        let config = WorkerConfig {
            conninfo: workers.to_key_value(),
            schema: tables.schema.as_str().to_owned(),
            worker: "worker".to_owned(),
            process: 0,
            role: WorkerRole::Tasks,
            recipe: tables.recipe,
            plan,
        };
        let environment = Environment {
            info: tables.info.clone(),
            schema: tables.schema.clone(),
            program: options.program.clone(),
            config,
            seed: options.seed,
            headless: options.headless,
            question: options.question.clone(),
        };
        let contests = options.contests.clone();
        let mut running = RunningContests::new(tables.clone(), options.seed);
        if options.workers > 0 {
            running.add(TaskContest { tables, options, plan }.begin(&environment)?);
        }
        for contest in contests {
            running.add(Box::pin(contest.begin(&environment, &client)).await?);
        }
        Ok(running)
    }

    pub async fn remove(self) -> Result<(), TasksError> {
        remove(&self.tables).await
    }
}

/// Interval between, and number of, attempts to remove the schema while sessions of ended workers still exist.
const POLL: Duration = Duration::from_millis(100);
const REMOVALS: u32 = 50;

#[derive(Debug)]
pub struct RunningContests {
    tables: TaskTables,
    contests: Vec<Runner>,
    seed: u64,
    since: Instant,
}

impl RunningContests {
    fn new(tables: TaskTables, seed: u64) -> Self {
        Self { tables, contests: Vec::new(), seed, since: clock::monotonic() }
    }

    fn add(&mut self, contest: Runner) {
        self.contests.push(contest);
    }

    #[must_use]
    pub fn schema(&self) -> &SchemaName {
        &self.tables.schema
    }

    /// URLs of the Redis servers that the contests use, in sets that decide together.
    #[must_use]
    pub fn redis(&self) -> Vec<Vec<String>> {
        self.contests.iter().flat_map(Runner::redis).collect()
    }

    pub async fn outcome(&self) -> Result<Outcome, TasksError> {
        let client = connect(&self.tables.info).await?.client;
        self.count(&client).await
    }

    async fn count(&self, client: &Client) -> Result<Outcome, TasksError> {
        let mut outcome = Outcome::default();
        (outcome.summary.seconds, outcome.summary.seed) = (self.since.elapsed().as_secs_f64(), self.seed);
        for contest in &self.contests {
            outcome.add(contest.count(client).await.map_err(TasksError::server("the numbers"))?);
        }
        Ok(outcome)
    }

    /// Resumes paused workers, requests all to end, kills those that do not, and counts.
    ///
    /// # Errors
    /// If the server does not provide the numbers; the workers have ended all the same.
    pub async fn finish(&mut self) -> Result<Outcome, TasksError> {
        // In parallel, since each waits for its own end.
        join_all(self.contests.iter_mut().map(Runner::finish)).await;
        self.outcome().await
    }

    pub async fn remove(self) -> Result<(), TasksError> {
        self.end().await
    }

    /// Ends the workers at once, and returns a future that removes the schema, on another runtime.
    pub(crate) fn end(self) -> impl Future<Output = Result<(), TasksError>> + Send + use<> {
        let tables = self.tables.clone();
        drop(self);
        async move { remove(&tables).await }
    }
}

/// The sessions of killed workers may take a moment to end.
async fn remove(tables: &TaskTables) -> Result<(), TasksError> {
    let mut outcome = tables.remove().await;
    for _ in 0..REMOVALS {
        let Err(TasksError::Schema(SchemaError::InUse { .. })) = &outcome else { break };
        tokio::time::sleep(POLL).await;
        outcome = tables.remove().await;
    }
    outcome
}

/// Interval between two polls: long enough for an orphan to be seen on a screen, and shorter if there are many.
const EVERY: Duration = Duration::from_millis(2_500);
const EVERY_CRASH: Duration = Duration::from_secs(1);
/// How long hung work remains visible before it is terminated.
const HUNG_AFTER: Duration = Duration::from_secs(8);
/// How long to wait for a session to end after its termination was requested.
const WAIT: Duration = Duration::from_secs(5);
/// The recipe's timeout in minutes, before scaling: its function counts whole minutes.
const RECIPE_MINUTES: f64 = 30.0;

/// The recovery next to the workers, like a user's cron job; with a dashboard the operator has half a minute to do it
/// first. Orphans are always recovered. Executions past their timeout are terminated if workers are stopped, since a
/// paused worker never ends, and every few seconds if work hangs.
pub(super) async fn run(shared: Arc<TaskContest>) {
    loop {
        if let Some(client) = shared.connect("recovery").await {
            if shared.tables.recipe {
                by_recipe(&shared, &client).await;
            } else {
                by_schema(&shared, &client).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn by_schema(shared: &TaskContest, client: &Client) {
    let order = Order {
        actor: Actor::of_process("locktop demo", shared.tables.info.user()),
        reason: None,
        wait: WAIT,
    };
    let mut ended = clock::monotonic();
    while !client.is_closed() {
        let terminate = shared.options.crash || (shared.options.stall && ended.elapsed() >= HUNG_AFTER);
        shared.options.question.closed().await;
        recover(shared, client, &order, Selection::Orphans, false).await;
        if terminate {
            ended = clock::monotonic();
            recover(shared, client, &order, Selection::Longer(None), true).await;
        }
        tokio::time::sleep(if shared.options.crash { EVERY_CRASH } else { EVERY }).await;
    }
}

/// One poll, and the recovery of what it finds. An execution whose recovery is refused or lost is found again by the next
/// poll.
async fn recover(shared: &TaskContest, client: &Client, order: &Order, select: Selection, terminate: bool) {
    let request = Request { select, task: None, terminate };
    if let Ok(mut plan) = recovery::plan(client, &shared.tables.schema, &request).await {
        let (grace, now) = (shared.options.manual_grace(), plan.taken_at);
        plan.rows
            .retain(|row| trouble_for(&row.seen, now) >= grace + if terminate { 0.0 } else { plan.grace });
        recovery::execute(client, &shared.tables.schema, &plan, order, |_| {}).await;
    }
}

/// How many seconds, at most, an execution has been in trouble: past its timeout, or without a sign of life.
fn trouble_for(seen: &Running, now: Timestamp) -> f64 {
    if seen.state == RunState::Slow {
        return seen.run_seconds.zip(seen.timeout_seconds).map_or(0.0, |(run, limit)| run - limit);
    }
    seen.last_seen_at().map_or(f64::INFINITY, |at| (now - at).as_seconds_f64())
}

async fn by_recipe(shared: &TaskContest, client: &Client) {
    let minutes = shared.plan.scaled(RECIPE_MINUTES).round();
    let sql = format!("SELECT count(*) FROM check_and_recover_timeout_tasks({minutes})");
    while client.execute(&sql, &[]).await.is_ok() || !client.is_closed() {
        tokio::time::sleep(EVERY).await;
    }
}
