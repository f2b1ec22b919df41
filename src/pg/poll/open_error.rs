//! Why there is no session.

use pg_connect::error::ConnectError;

/// A session that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No connection to the server could be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection stands, but the server refuses what locktop needs first.
    #[error("the server accepted the connection and then failed: {0}")]
    Setup(String),
    /// The connection stands, but the server says nothing.
    #[error("the server accepted the connection and does not answer")]
    Silent,
    /// A pooler that cannot be used, and what helps.
    #[error("{0}")]
    Pooler(String),
    /// The session has what we prepared in one before: a pooler in between gives its sessions to others, as they were left.
    #[error("a pooler passes sessions to other clients without a reset")]
    Lent,
    /// A server without what locktop reads.
    #[error("PostgreSQL {0}: locktop needs 14 or later")]
    TooOld(String),
}

impl OpenError {
    /// Whether it may well pass by itself: no connection left, or starting up (SQLSTATE 53300, 57P03).
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Connect(error) if error.is_waitable())
    }

    /// Whether the server accepted the connection and then said nothing. Each further attempt may leave a process
    /// there that waits for whatever holds the server up.
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Silent => true,
            Self::Connect(error) => error.is_silence(),
            Self::Setup(_) | Self::Pooler(_) | Self::Lent | Self::TooOld(_) => false,
        }
    }
}
