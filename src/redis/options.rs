//! Options for reading the servers, and the resulting state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::RedisFault;
use crate::model::redis_lease::RedisLeases;

/// Which keys are read as locks, how often, and how much of a server's time that may take.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// Redis glob patterns of the keys that are locks.
    pub patterns: Vec<String>,
    /// From the start of one round to the start of the next.
    pub interval: Duration,
    /// Longest wait for a connection, and for each answer.
    pub timeout: Duration,
    /// Limit of keys that are read; the rest is left out.
    pub most_keys: usize,
    /// Keys that a server scans in one step.
    pub step: u32,
    /// Steps of a server in one round.
    pub steps: u32,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            patterns: vec!["lock:*".to_owned()],
            interval: Duration::from_secs(1),
            timeout: Duration::from_millis(500),
            most_keys: 1000,
            step: 200,
            steps: 20,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct RedisState {
    /// Number of the round, from 1; 0 before the first.
    pub round: u64,
    /// The locks and the state of each server. While no server answers, the last rows and their time are kept.
    pub leases: Arc<RedisLeases>,
    /// When the rows were read, by the local monotonic clock.
    pub read: Option<Instant>,
}

/// Result of the deletion on one server.
#[derive(Debug, Clone)]
pub enum Unlock {
    /// It matched what was shown, and was deleted.
    Freed,
    Gone,
    /// It has another holder, or was renewed with another count: nothing was deleted.
    Changed,
    /// The shown value is incomplete, or not a lock: no command was sent.
    NotComparable,
    /// The result is not known: the server refused or did not answer.
    Failed(RedisFault),
}
