//! What is asked of the servers, and what is known of them afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::RedisFault;
use crate::model::redis_lease::RedisLeases;

/// Which keys are read as locks, how often, and how much of a server's time that may take.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// Which keys are locks, as globs of Redis.
    pub patterns: Vec<String>,
    /// From the beginning of one round to that of the next.
    pub interval: Duration,
    /// Longest wait for a connection, and for each answer.
    pub timeout: Duration,
    /// Keys that are looked at; of more than these the rest is left out.
    pub most_keys: usize,
    /// Keys that a server looks through in one step.
    pub step: u32,
    /// Steps that a server takes in one round.
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

/// What the last round over all servers found.
#[derive(Debug, Clone, Default)]
pub struct RedisState {
    /// Number of the round, from 1 on; 0 before the first.
    pub round: u64,
    /// The locks, and how each server is. While no server answers, the rows of the last time stay, with their time.
    pub leases: Arc<RedisLeases>,
    /// When the rows were read, by the monotonic clock here.
    pub read: Option<Instant>,
}

/// What became of a lock on one server.
#[derive(Debug, Clone)]
pub enum Unlock {
    /// It was what was shown, and is deleted.
    Freed,
    /// The key was not there any more.
    Gone,
    /// It is another's by now, or was renewed with another count: nothing was deleted.
    Changed,
    /// What was shown is not all of the value, or no lock: nothing was asked.
    NotComparable,
    /// What became of it is not known: the server refused or did not answer.
    Failed(RedisFault),
}
