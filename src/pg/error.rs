//! What can go wrong on the way to a server.

/// A connection that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl ConnectError {
    /// Whether it may well pass by itself.
    #[must_use]
    pub fn is_waitable(&self) -> bool {
        false
    }
}

/// A connection string that cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum ConnInfoError {
    /// Anything else.
    #[error("{0}")]
    Other(String),
}
