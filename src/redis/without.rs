//! Stub for builds without the feature `redis`: it accepts no URL, so there is no server.

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
    fn a_url_is_refused_with_what_is_missing() {
        let error = parse_list("redis://localhost").unwrap_err().to_string();
        assert!(error.contains("--features redis"), "{error}");
    }
}
