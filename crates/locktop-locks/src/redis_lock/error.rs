//! Why there is no lock, or no longer one.

use std::time::Duration;

use crate::redis::{RedisUrl, RedisUrlError};

/// Servers or options that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// No URL.
    #[error(transparent)]
    Url(#[from] RedisUrlError),
    /// No server.
    #[error("a lock in Redis needs at least one server")]
    NoServer,
    /// One server cannot vote twice.
    #[error("{0} is named twice: each server has one vote")]
    Twice(RedisUrl),
    /// Too short.
    #[error("a term of {} ms is too short for a lock in Redis: take at least 100 ms", .0.as_millis())]
    Term(Duration),
}

/// The lock was not acquired, and what was set of it has been taken back as far as the servers answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAcquired {
    /// Others have it, on so many servers that there is no majority left.
    #[error("{key} is taken ({taken} of {servers} servers)")]
    Taken {
        /// The key.
        key: String,
        /// Servers that said no.
        taken: u32,
        /// Servers there are.
        servers: u32,
    },
    /// Too few servers can be asked.
    #[error("{key}: {granted} of {servers} servers agreed, and {quorum} are needed: {}", .faults.join("; "))]
    NoQuorum {
        /// The key.
        key: String,
        /// Servers that said yes.
        granted: u32,
        /// How many would have had to.
        quorum: u32,
        /// Servers there are.
        servers: u32,
        /// What is wrong with each of the others, in one line.
        faults: Vec<String>,
    },
    /// A majority agreed, when nothing was left of the term.
    #[error("{key}: the servers took {} ms to agree, and nothing was left of the term", .elapsed.as_millis())]
    TooSlow {
        /// The key.
        key: String,
        /// How long it took.
        elapsed: Duration,
    },
}

/// The lock is, or may be, no longer held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// So many servers no longer have the value that there is no majority left: the key was deleted, or is another's.
    #[error("the lock is lost: {gone} of {servers} servers no longer have it")]
    Gone {
        /// Servers that do not have it.
        gone: u32,
        /// Servers there are.
        servers: u32,
    },
    /// No majority confirmed a renewal before the term ended.
    #[error("the lock may be lost: it was not renewed in time")]
    Silent,
}

/// Work under a lock that was not done, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// It did not begin.
    #[error(transparent)]
    NotAcquired(#[from] NotAcquired),
    /// It was dropped where it was.
    #[error(transparent)]
    Lost(#[from] Lost),
}
