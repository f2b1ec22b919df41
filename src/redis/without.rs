//! In place of what reads Redis, in a build without the feature `redis`: no URL is accepted, and so there is no server.

use std::fmt;
use std::time::Duration;

use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinHandle;

use super::{RedisOptions, RedisSets, RedisState, Unlock};
use crate::model::redis_lease::RedisLease;

/// The address of a server: none can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisUrl(());

/// Why no URL is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this locktop was built without Redis: build it with `--features redis`")]
pub struct RedisUrlError;

/// A server that did not answer: there is none.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisFault {}

impl RedisUrl {
    /// Refuses every text.
    pub fn parse(_: &str) -> Result<Self, RedisUrlError> {
        Err(RedisUrlError)
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no server")
    }
}

/// The state of no servers, which never changes.
pub fn watch(_: impl Into<RedisSets>, _: RedisOptions) -> (Receiver<RedisState>, JoinHandle<()>) {
    (channel(RedisState::default()).1, tokio::spawn(async {}))
}

/// The state of no servers.
pub async fn read_once(_: impl Into<RedisSets>, _: RedisOptions) -> RedisState {
    RedisState::default()
}

/// No servers, no outcomes.
pub async fn force_unlock(_: &RedisLease, _: &[RedisUrl], _: Duration) -> Vec<Unlock> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use crate::redis::parse_list;

    #[test]
    fn a_url_is_refused_with_what_is_missing() {
        let error = parse_list("redis://localhost").unwrap_err().to_string();
        assert!(error.contains("--features redis"), "{error}");
    }
}
