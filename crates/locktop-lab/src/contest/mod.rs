//! The other lock systems under load: leases, the work queue, rate limits, ids and transfers. Many workers use each at
//! once, and it is judged by what they witnessed and the server recorded, not by its own reports.
//!
//! A worker that holds something while it works is a separate process, since it is killed and stopped: leases, locks in
//! Redis, the work queue, and the tasks ([`crate::tasks`]). One runner manages them all, and one engine injects the
//! faults. Rate limits, ids and transfers are single calls that can only conflict between sessions in the server, so
//! their workers are sessions of the demo.

mod environment;
mod faults;
mod ids;
pub(crate) mod leases;
pub(crate) mod queue;
mod rate_limit;
#[cfg(feature = "redis")]
pub(crate) mod redis_locks;
mod runner;
mod sessions;
mod tally;
mod transfer;

pub use tally::Tally;

pub(super) use environment::Environment;
#[cfg(test)]
pub(super) use faults::ScheduledFault;
pub(super) use faults::{EpochMicros, Fault, FaultPlan, PauseInterval};
pub(super) use runner::Runner;
pub(super) use tally::{ContestOutcome, count, numbers, tally};

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use strum::{IntoStaticStr, VariantArray};
use tokio_postgres::{Client, Error};

use super::workers::TasksError;

pub(crate) trait RunningContest: Debug + Send + Sync {
    /// Resumes paused workers, lets current work finish, and ends all workers.
    fn finish(&mut self) -> BoxFuture<'_, ()>;

    /// URLs of the contest's Redis servers for the dashboard, in sets.
    fn redis(&self) -> Vec<Vec<String>> {
        Vec::new()
    }

    fn count<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<ContestOutcome, Error>>;
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
    ) -> Result<Box<dyn RunningContest>, TasksError> {
        Ok(match self {
            Self::Leases => Box::new(leases::Leases::begin(environment, client).await?),
            Self::RateLimit => Box::new(rate_limit::RateLimits::begin(environment)),
            Self::Ids => Box::new(ids::Ids::begin(environment, client).await?),
            Self::Transfer => Box::new(transfer::Transfers::begin(environment, client).await?),
            Self::Queue => Box::new(queue::Queue::begin(environment, client).await?),
            #[cfg(feature = "redis")]
            Self::Redis => Box::new(redis_locks::RedisContest::begin(environment, client).await?),
        })
    }
}
