//! A server that does not answer as it should. One line each, without a password.

use std::time::Duration;

use super::error::TlsTrouble;
use super::url::RedisUrl;

/// A server that did not answer, or not with what was asked for.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisFault {
    /// No connection.
    #[error("{server}: cannot connect: {reason}")]
    Refused {
        /// Which server.
        server: RedisUrl,
        /// What the system or the server said.
        reason: String,
    },
    /// The connection is there, and no encryption.
    #[error("{server}: {trouble}")]
    Tls {
        /// Which server.
        server: RedisUrl,
        /// What is wrong.
        trouble: TlsTrouble,
    },
    /// Nothing came in time.
    #[error("{server}: no answer within {} ms", .patience.as_millis())]
    Silent {
        /// Which server.
        server: RedisUrl,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The connection broke.
    #[error("{server}: the connection is lost: {reason}")]
    Lost {
        /// Which server.
        server: RedisUrl,
        /// What the system said.
        reason: String,
    },
    /// The server answered with an error.
    #[error("{server}: {command} was refused: {reason}")]
    Answer {
        /// Which server.
        server: RedisUrl,
        /// What was asked.
        command: &'static str,
        /// What it said.
        reason: String,
    },
    /// The server answered something else than Redis does.
    #[error("{server}: {command} was not answered as Redis does; is this a Redis server?")]
    Strange {
        /// Which server.
        server: RedisUrl,
        /// What was asked.
        command: &'static str,
    },
}

impl RedisFault {
    /// Whether the connection can still be used.
    #[must_use]
    pub const fn leaves_the_connection(&self) -> bool {
        matches!(self, Self::Answer { .. } | Self::Strange { .. })
    }
}
