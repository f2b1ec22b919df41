//! The other lock systems at work: leases, the work queue, rate limits, ids and transfers. Many workers use each at once, and it is judged by
//! what they witnessed and the server recorded, not by what the system says of itself.
//!
//! Who holds something while it works is a process of its own, since it is to be killed and stopped: leases, locks in Redis, the work
//! queue, and the tasks ([`crate::tasks`]). One runner has them all, and one engine injects the faults.
//! Rate limits, ids and transfers are single calls. All that can happen to them happens between sessions in the server, so there the
//! workers are sessions of the demo.

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

/// A contest that goes on. Dropping it ends it at once.
pub(crate) trait RunningContest: Debug + Send + Sync {
    /// Resumes what is paused, lets what is under way come to its end, and ends all workers.
    fn finish(&mut self) -> BoxFuture<'_, ()>;

    /// The servers of Redis that are a part of it, to be looked at, in sets.
    fn redis(&self) -> Vec<Vec<String>> {
        Vec::new()
    }

    /// The numbers, as they are now.
    fn count<'a>(&'a self, client: &'a Client) -> BoxFuture<'a, Result<ContestOutcome, Error>>;
}

/// One of the systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Contest {
    /// Processes compete for leases, and write what only a holder may.
    Leases,
    /// Sessions ask for more than a limit allows.
    RateLimit,
    /// Sessions make ids, two for each worker of the generator.
    Ids,
    /// Sessions move money between few accounts.
    Transfer,
    /// Processes work off a queue.
    Queue,
    /// Processes use locks in Redis, on one server and on five.
    #[cfg(feature = "redis")]
    Redis,
}

impl Contest {
    /// All of them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Its name on the command line and in the output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The names of its numbers, in order.
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

    /// Starts it, in the schema of the environment.
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
