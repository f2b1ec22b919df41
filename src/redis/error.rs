//! Why a Redis server says nothing. One line each, without a password.

use std::time::Duration;

use super::url::RedisUrl;

/// A URL that is none. It is not repeated: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedisUrlError {
    /// Not understood.
    #[error(
        "not a Redis URL ({0}): write redis://[user[:password]@]host[:port][/database], or redis+unix:///path/to/socket \
         (in a password write %3A for \":\", %2F for \"/\", %40 for \"@\")"
    )]
    Syntax(String),
    /// TLS.
    #[error(
        "Redis over TLS (rediss://) is not supported: use redis:// through a tunnel such as stunnel or ssh"
    )]
    Tls,
}

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
