//! The other lock systems at work: leases, the work queue, rate limits, ids and transfers. Each is played by many at once, and judged by
//! what they witnessed and the server recorded, not by what the system says of itself.
//!
//! Who holds something while it works is a process of its own, since it is to be killed and stopped: leases, locks in Redis, the work
//! queue, and the tasks ([`crate::tasks`]). One runner has them all, and one engine injects the faults.
//! Rate limits, ids and transfers are single calls. All that can happen to them happens between sessions in the server, so there the
//! players are sessions of the demo.

mod crowd;
mod faults;
mod game;
mod ids;
pub(crate) mod leases;
pub(crate) mod queue;
mod rate_limit;
pub(crate) mod redis_locks;
mod runner;
mod tally;
mod transfer;

pub use tally::Tally;

#[cfg(test)]
pub(super) use faults::Mishap;
pub(super) use faults::{Fault, Faults, Moment, Stop};
pub(super) use game::{Game, Place};
pub(super) use runner::Runner;
pub(super) use tally::{Found, count, numbers};

use tokio_postgres::Client;

use super::workers::TasksError;

/// One of the systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    Redis,
}

impl Contest {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Leases, Self::RateLimit, Self::Ids, Self::Transfer, Self::Queue, Self::Redis];

    /// Its name on the command line and in the output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Leases => "leases",
            Self::RateLimit => "ratelimit",
            Self::Ids => "ids",
            Self::Transfer => "transfer",
            Self::Queue => "queue",
            Self::Redis => "redis",
        }
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
            Self::Redis => &redis_locks::KEYS,
        }
    }

    /// Begins to play, in the schema of the place.
    pub(super) async fn begin(self, place: &Place, client: &Client) -> Result<Box<dyn Game>, TasksError> {
        Ok(match self {
            Self::Leases => Box::new(leases::Leases::begin(place, client).await?),
            Self::RateLimit => Box::new(rate_limit::RateLimits::begin(place)),
            Self::Ids => Box::new(ids::Ids::begin(place, client).await?),
            Self::Transfer => Box::new(transfer::Transfers::begin(place, client).await?),
            Self::Queue => Box::new(queue::Queue::begin(place, client).await?),
            Self::Redis => Box::new(redis_locks::RedisGame::begin(place, client).await?),
        })
    }
}
