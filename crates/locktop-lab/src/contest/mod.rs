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

use super::OpenQuestion;
use super::workers::{TasksError, WorkerConfig};
use locktop_tasks::schema::SchemaName;
use pg_connect::conninfo::ConnInfo;

/// Delay before reconnecting after the server is lost.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub(crate) struct Environment {
    pub(crate) info: ConnInfo,
    /// The schema with locktop's tables and functions, created by the demo.
    pub(crate) schema: SchemaName,
    pub(crate) program: PathBuf,
    pub(crate) config: WorkerConfig,
    pub(crate) seed: u64,
    pub(crate) headless: bool,
    /// While a question is open, no fault is injected.
    pub(crate) question: OpenQuestion,
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

    pub(super) async fn begin(
        self,
        environment: &Environment,
        client: &Client,
    ) -> Result<Runner, TasksError> {
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
