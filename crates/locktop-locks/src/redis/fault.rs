//! A server that does not answer as it should. One line each, without a password.

use std::time::Duration;

use super::error::TlsTrouble;
use super::url::RedisUrl;

/// A server that did not answer, or not with what was asked for.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisFault {
    /// No connection could be made: TCP, the password, or the choice of the database was refused.
    #[error("{server}: cannot connect: {reason}")]
    Refused {
        /// The server that was connected to.
        server: RedisUrl,
        /// What the system or the server said.
        reason: String,
    },
    /// The server was reached, but no encrypted connection came about.
    #[error("{server}: {trouble}")]
    Tls {
        /// The server that was connected to.
        server: RedisUrl,
        /// What is wrong with TLS, with what to do about it.
        trouble: TlsTrouble,
    },
    /// No answer came in time, to connecting or to a command.
    #[error("{server}: no answer within {} ms", .timeout.as_millis())]
    Silent {
        /// The server that did not answer.
        server: RedisUrl,
        /// How long an answer was waited for.
        timeout: Duration,
    },
    /// The connection broke while an answer was waited for.
    #[error("{server}: the connection is lost: {reason}")]
    Lost {
        /// The server that it was to.
        server: RedisUrl,
        /// What the system said, in one line.
        reason: String,
    },
    /// The server answered with an error.
    #[error("{server}: {command} was refused: {reason}")]
    Answer {
        /// The server that refused.
        server: RedisUrl,
        /// The name of the command that was sent.
        command: &'static str,
        /// The server's error, in one line.
        reason: String,
    },
    /// The server answered something else than Redis does.
    #[error("{server}: {command} got an unexpected answer; is this a Redis server?")]
    Strange {
        /// The server that answered.
        server: RedisUrl,
        /// The name of the command that was sent.
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
