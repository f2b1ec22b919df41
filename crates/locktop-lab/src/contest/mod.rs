//! The other lock systems under load: leases, the work queue, rate limits, ids and transfers. Many workers use each at
//! once, and it is judged by what they witnessed and the server recorded, not by its own reports.
//!
//! A worker that holds something while it works is a separate process, since it is killed and stopped: leases, locks in
//! Redis, the work queue, and the tasks ([`crate::tasks`]). One runner manages them all, and one engine injects the
//! faults. Rate limits, ids and transfers are single calls that can only conflict between sessions in the server, so
//! their workers are sessions of the demo.

mod faults;
mod ids;
pub(crate) mod leases;
pub(crate) mod queue;
mod rate_limit;
#[cfg(feature = "redis")]
pub(crate) mod redis_locks;
mod runner;
mod tally;
mod transfer;

pub use tally::Tally;

#[cfg(test)]
pub(super) use faults::ScheduledFault;
pub(super) use faults::{EpochMicros, Fault, FaultPlan, PauseInterval};
pub(super) use runner::{Report, Runner};
pub(super) use tally::{ContestOutcome, count, numbers, tally};

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use strum::{IntoStaticStr, VariantArray};
use tokio_postgres::{Client, Error};

use super::workers::{Plan, WorkerConfig, WorkerRole};
use super::{Language, OpenQuestion};
use crate::DemoError;
use locktop_locks::Error as LockError;
use locktop_tasks::schema::SchemaName;
use pg_connect::connect::connect;
use pg_connect::conninfo::ConnInfo;

/// Delay before reconnecting after the server is lost.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

/// Seconds that an execution with a free key is left alone, before scaling; and the minimum after scaling.
const GRACE: f64 = 30.0;
const SHORTEST_GRACE: f64 = 1.0;
/// Workers wait longer than the recovery before they take over an orphan, so that there is something to recover.
const WORKERS_GRACE: f64 = 3.0;
/// Seconds for which trouble is left to the operator of the dashboard, before the demo repairs it automatically; and the
/// minimum that workers wait beyond that.
const MANUAL_GRACE: f64 = 30.0;
const WORKERS_BEYOND: f64 = 15.0;
/// Seconds after which a due task counts as overdue on the screens of a demo, before scaling.
const OVERDUE: f64 = 60.0;
const SHORTEST_OVERDUE: f64 = 2.0;

#[derive(Debug, Clone)]
pub struct TasksOptions {
    /// The program that provides `demo-worker`: locktop.
    pub program: PathBuf,
    /// Workers are killed, stopped and cut off continuously, instead of now and then.
    pub crash: bool,
    /// One of thirty tasks never ends.
    pub stall: bool,
    pub workers: usize,
    pub tasks: usize,
    /// How many times faster than real time.
    pub time_scale: f64,
    pub question: OpenQuestion,
    pub language: Language,
    pub seed: u64,
    /// Without a dashboard: no witness records are deleted, and faults come more often.
    pub headless: bool,
    /// Statements that create other tables and functions, with the names of the published recipe, in place of locktop's.
    pub recipe: Option<String>,
    /// Contests that run in addition to the tasks, or in place of them; not with a recipe, whose schema has nothing for them.
    pub contests: Vec<Contest>,
}

impl TasksOptions {
    /// Ten workers and a hundred tasks, at a minute in a second.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            crash: false,
            stall: false,
            workers: 10,
            tasks: 100,
            time_scale: 60.0,
            question: OpenQuestion::default(),
            language: Language::default(),
            seed: 1,
            headless: false,
            recipe: None,
            contests: Vec::new(),
        }
    }

    /// Seconds after which an execution with a free key is an orphan.
    #[must_use]
    pub fn orphan_grace(&self) -> f64 {
        (GRACE / self.time_scale).max(SHORTEST_GRACE)
    }

    pub(super) fn manual_grace(&self) -> f64 {
        if self.headless { 0.0 } else { MANUAL_GRACE }
    }

    /// Seconds after which a worker takes over an orphan.
    fn takeover(&self) -> f64 {
        let least = if self.headless { 0.0 } else { MANUAL_GRACE + WORKERS_BEYOND };
        (self.orphan_grace() * WORKERS_GRACE).max(least)
    }

    #[must_use]
    pub fn overdue(&self) -> f64 {
        (OVERDUE / self.time_scale).max(SHORTEST_OVERDUE)
    }
}

/// What all contests of a demo have in common.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// Connection parameters; they include the setting that defines when an execution is an orphan.
    pub(crate) info: ConnInfo,
    /// The schema with locktop's tables and functions, or a recipe's, created by the demo.
    pub(crate) schema: SchemaName,
    pub(crate) options: TasksOptions,
    pub(crate) config: WorkerConfig,
}

impl Environment {
    pub(crate) fn new(info: &ConnInfo, schema: SchemaName, options: TasksOptions) -> Self {
        let with_grace = |grace: f64| {
            let grace = format!("{}ms", (grace * 1_000.0).round());
            let info = info.clone().with_setting("locktop.orphan_grace", &grace);
            if options.recipe.is_none() {
                return info;
            }
            // For the recipe's functions.
            info.with_setting("search_path", &format!("{},public", schema.as_str()))
        };
        let config = WorkerConfig {
            conninfo: with_grace(options.takeover()).to_key_value(),
            schema: schema.as_str().to_owned(),
            worker: "worker".to_owned(),
            process: 0,
            role: WorkerRole::Tasks,
            recipe: options.recipe.is_some(),
            plan: Plan {
                seed: options.seed,
                count: options.tasks,
                hanging: options.stall,
                language: options.language,
                time_scale: options.time_scale,
            },
        };
        Self { info: with_grace(options.orphan_grace()), schema, options, config }
    }

    pub(crate) async fn connect(&self, purpose: &str) -> Option<Client> {
        let info = self.info.clone().with_application_name(&format!("locktop demo {purpose}"));
        Some(connect(&info).await.ok()?.client)
    }
}

/// The part of a contest that differs from the others; a [`Runner`] does the rest.
pub(crate) trait Rules: Debug + Send + Sync + 'static {
    /// URLs of the contest's Redis servers for the dashboard, in sets.
    fn redis(&self) -> Vec<Vec<String>> {
        Vec::new()
    }

    /// Called after all workers have ended.
    fn settle(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    fn count(&self, client: &Client, report: &Report) -> impl Future<Output = Counted> + Send;
}

trait AnyRules: Debug + Send + Sync {
    fn redis(&self) -> Vec<Vec<String>>;
    fn settle(&self) -> BoxFuture<'_, ()>;
    fn count<'a>(&'a self, client: &'a Client, report: &'a Report) -> BoxFuture<'a, Counted>;
}

type Counted = Result<ContestOutcome, Error>;

impl<R: Rules> AnyRules for R {
    fn redis(&self) -> Vec<Vec<String>> {
        Rules::redis(self)
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Rules::settle(self).boxed()
    }

    fn count<'a>(&'a self, client: &'a Client, report: &'a Report) -> BoxFuture<'a, Counted> {
        Rules::count(self, client, report).boxed()
    }
}

/// For `map_err`: the error of a statement that is not one of the library's.
fn failed(what: &'static str) -> impl FnOnce(Error) -> LockError {
    move |error| LockError::Disconnected { what: what.to_owned(), reason: error.to_string() }
}

/// Also returns the data if a task panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Contest {
    Leases,
    RateLimit,
    Ids,
    Transfer,
    Queue,
    #[cfg(feature = "redis")]
    Redis,
}

impl Contest {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    #[must_use]
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Leases => &leases::KEYS,
            Self::RateLimit => &rate_limit::KEYS,
            Self::Ids => &ids::KEYS,
            Self::Transfer => &transfer::KEYS,
            Self::Queue => &queue::KEYS,
            #[cfg(feature = "redis")]
            Self::Redis => &redis_locks::KEYS,
        }
    }

    pub(super) async fn begin(self, environment: &Environment, client: &Client) -> Result<Runner, DemoError> {
        match self {
            Self::Leases => leases::begin(environment, client).await,
            Self::RateLimit => Ok(rate_limit::begin(environment)),
            Self::Ids => ids::begin(environment, client).await,
            Self::Transfer => transfer::begin(environment, client).await,
            Self::Queue => queue::begin(environment, client).await,
            #[cfg(feature = "redis")]
            Self::Redis => redis_locks::begin(environment, client).await,
        }
    }
}
