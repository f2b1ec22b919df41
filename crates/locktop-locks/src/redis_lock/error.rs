use std::time::Duration;

use crate::redis::{RedisUrl, RedisUrlError};

/// Servers or options that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// One of the servers is not a Redis URL.
    #[error(transparent)]
    Url(#[from] RedisUrlError),
    /// The list of servers is empty.
    #[error("a lock in Redis needs at least one server")]
    NoServer,
    /// This server is in the list more than once: one server cannot vote twice.
    #[error("{0} is named twice: each server has one vote")]
    Twice(RedisUrl),
    /// The term is shorter than 100 ms, which leaves no time for the answers of a majority.
    #[error("a term of {} ms is too short for a lock in Redis: use at least 100 ms", .0.as_millis())]
    Term(Duration),
}

/// The lock was not acquired, and what was set of it has been removed as far as the servers answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAcquired {
    /// Others hold it, on so many servers that no majority is left.
    #[error("{key} is taken ({taken} of {servers} servers)")]
    Taken {
        /// The key of the lock in Redis.
        key: String,
        /// Servers on which another client has the key.
        taken: u32,
        /// Servers that were asked, including those without an answer.
        servers: u32,
    },
    /// Too few servers are available.
    #[error("{key}: {granted} of {servers} servers agreed, and {quorum} are needed: {}", .faults.join("; "))]
    NoQuorum {
        /// The key of the lock in Redis.
        key: String,
        /// Servers that set the key.
        granted: u32,
        /// Servers that must agree: more than half of them.
        quorum: u32,
        /// Servers that were asked, including those without an answer.
        servers: u32,
        /// The problem of each of the others, in one line.
        faults: Vec<String>,
    },
    /// A majority agreed, but nothing was left of the term.
    #[error("{key}: the servers took {} ms to agree, longer than the lock lasts", .elapsed.as_millis())]
    TooSlow {
        /// The key of the lock in Redis.
        key: String,
        /// How long it took, from before the first request was sent.
        elapsed: Duration,
    },
}

/// The lock is, or may be, no longer held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// So many servers no longer have the value that no majority is left: the key was deleted, or has another client's value.
    #[error("the lock is lost: {gone} of {servers} servers no longer have it")]
    Gone {
        /// Servers that answered that they do not have the value.
        gone: u32,
        /// Servers that were asked, including those without an answer.
        servers: u32,
    },
    /// No majority confirmed a renewal before the term ended.
    #[error("the lock may be lost: it was not renewed in time")]
    Silent,
}

/// Work under a lock that was not done, or not completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// The lock was not acquired, so the work did not begin.
    #[error(transparent)]
    NotAcquired(#[from] NotAcquired),
    /// The lock was lost, and the work was dropped midway.
    #[error(transparent)]
    Lost(#[from] Lost),
}
