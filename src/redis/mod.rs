//! Redis: reads the locks that are stored there. Nothing here is part of a poll of PostgreSQL: a slow, failed or
//! misconfigured Redis delays only its own rows.

#[cfg(feature = "redis")]
mod force;
#[cfg(feature = "redis")]
mod read;
#[cfg(feature = "redis")]
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::redis_lease::RedisLeases;

#[cfg(feature = "redis")]
pub use force::force_unlock;
#[cfg(feature = "redis")]
pub use locktop_locks::redis::{Command, Connection, RedisFault, RedisUrl, RedisUrlError, Reply, TlsProblem};
#[cfg(feature = "redis")]
pub use watch::{read_once, watch};
#[cfg(not(feature = "redis"))]
pub use without::{RedisFault, RedisUrl, RedisUrlError, force_unlock, read_once, watch};

#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// Redis glob patterns of the keys that are locks.
    pub patterns: Vec<String>,
    /// From the start of one round to the start of the next.
    pub interval: Duration,
    /// Longest wait for a connection, and for each answer.
    pub timeout: Duration,
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

/// URL schemes that start a new URL after a comma.
const SCHEMES: [&str; 7] =
    ["redis://", "rediss://", "valkey://", "valkeys://", "redis+unix://", "valkey+unix://", "unix://"];

/// Sets of servers; a server is in exactly one set. A lock is held by the client that has it on most servers of a set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisSets(Vec<Vec<RedisUrl>>);

impl RedisSets {
    /// Adds a set; an empty one is ignored.
    ///
    /// # Errors
    /// The first URL that is in the set twice, or already in another set.
    pub fn add(&mut self, set: Vec<RedisUrl>) -> Result<(), RedisUrl> {
        for (at, url) in set.iter().enumerate() {
            if self.servers().any(|other| other == url) || set.iter().take(at).any(|other| other == url) {
                return Err(url.clone());
            }
        }
        if !set.is_empty() {
            self.0.push(set);
        }
        Ok(())
    }

    pub fn servers(&self) -> impl Iterator<Item = &RedisUrl> {
        self.0.iter().flatten()
    }

    pub fn sizes(&self) -> Vec<usize> {
        self.0.iter().map(Vec::len).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<RedisUrl>> for RedisSets {
    fn from(set: Vec<RedisUrl>) -> Self {
        Self(if set.is_empty() { Vec::new() } else { vec![set] })
    }
}

/// Parses a comma-separated list. A comma without a URL after it belongs to the URL before it, for example to its password.
pub fn parse_list(text: &str) -> Result<Vec<RedisUrl>, RedisUrlError> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(',') {
        let begins = |scheme: &str| part.trim_start().get(..scheme.len()) == Some(scheme);
        match parts.last_mut() {
            Some(last) if !SCHEMES.into_iter().any(begins) => last.extend([",", part]),
            _ => parts.push(part.to_owned()),
        }
    }
    parts.iter().map(|part| RedisUrl::parse(part)).collect()
}

#[cfg(test)]
#[cfg(feature = "redis")]
mod tests {
    use super::*;

    fn urls(text: &str) -> Vec<RedisUrl> {
        parse_list(text).unwrap()
    }

    #[test]
    fn a_comma_separates_urls_and_nothing_else() {
        let table = [
            ("redis://a", vec!["a:6379"]),
            ("redis://a,redis://b:7000/1, rediss://c", vec!["a:6379", "b:7000/1", "c:6379"]),
            ("redis://:p,w@a,unix:///run/x,y.sock", vec!["a:6379", "/run/x,y.sock"]),
        ];
        for (text, shown) in table {
            assert_eq!(urls(text).iter().map(ToString::to_string).collect::<Vec<_>>(), shown);
        }
        assert!(parse_list("redis://a,redis://").is_err());
        assert!(parse_list("").is_err());
    }

    #[test]
    fn a_server_is_in_one_set() {
        let mut sets = RedisSets::from(urls("redis://a,redis://b"));
        assert_eq!(sets.add(urls("redis://c,redis://:s3cret@a")).unwrap_err().to_string(), "a:6379");
        assert_eq!(sets.add(urls("redis://d,redis://d")).unwrap_err().to_string(), "d:6379");
        sets.add(Vec::new()).unwrap();
        sets.add(urls("redis://c")).unwrap();
        assert_eq!((sets.sizes(), sets.servers().count(), sets.is_empty()), (vec![2, 1], 3, false));
        assert_eq!(RedisSets::from(Vec::new()), RedisSets::default());
    }
}

/// Without the feature `redis` no URL is accepted, so there is no server.
#[cfg(not(feature = "redis"))]
mod without {
    use std::fmt;
    use std::time::Duration;

    use tokio::sync::watch::{Receiver, channel};
    use tokio::task::JoinHandle;

    use super::{RedisOptions, RedisSets, RedisState, Unlock};
    use crate::model::redis_lease::RedisLease;

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RedisUrl(());

    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[error("this locktop was built without Redis: build it with `--features redis`")]
    pub struct RedisUrlError;

    #[derive(Debug, Clone, thiserror::Error)]
    pub enum RedisFault {}

    impl RedisUrl {
        pub fn parse(_: &str) -> Result<Self, RedisUrlError> {
            Err(RedisUrlError)
        }
    }

    impl fmt::Display for RedisUrl {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("no server")
        }
    }

    pub fn watch(_: impl Into<RedisSets>, _: RedisOptions) -> (Receiver<RedisState>, JoinHandle<()>) {
        (channel(RedisState::default()).1, tokio::spawn(async {}))
    }

    pub async fn read_once(_: impl Into<RedisSets>, _: RedisOptions) -> RedisState {
        RedisState::default()
    }

    pub async fn force_unlock(_: &RedisLease, _: &[RedisUrl], _: Duration) -> Vec<Unlock> {
        Vec::new()
    }

    #[cfg(test)]
    mod tests {
        use crate::redis::parse_list;

        #[test]
        fn a_url_is_rejected_without_the_redis_feature() {
            let error = parse_list("redis://localhost").unwrap_err().to_string();
            assert!(error.contains("--features redis"), "{error}");
        }
    }
}
