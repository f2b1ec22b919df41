use std::time::Duration;

use super::error::TlsTrouble;
use super::url::RedisUrl;

/// A server that did not answer, or not as expected.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisFault {
    /// No connection could be made: TCP, the password, or the database was refused.
    #[error("{server}: cannot connect: {reason}")]
    Refused {
        /// The server that was connected to.
        server: RedisUrl,
        /// The message of the system or the server.
        reason: String,
    },
    /// The server was reached, but no encrypted connection was established.
    #[error("{server}: {trouble}")]
    Tls {
        /// The server that was connected to.
        server: RedisUrl,
        /// The TLS problem, with the remedy.
        trouble: TlsTrouble,
    },
    /// No answer came in time, to connecting or to a command.
    #[error("{server}: no answer within {} ms", .timeout.as_millis())]
    Silent {
        /// The server that did not answer.
        server: RedisUrl,
        /// How long the client waited for an answer.
        timeout: Duration,
    },
    /// The connection was lost while waiting for an answer.
    #[error("{server}: the connection is lost: {reason}")]
    Lost {
        /// The server of the connection.
        server: RedisUrl,
        /// The system's message, in one line.
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
    /// The server's answer is not one that Redis gives.
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
