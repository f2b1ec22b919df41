use pg_connect::error::ConnectError;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Connected, but the server refuses what locktop needs first.
    #[error("the server accepted the connection and then failed: {0}")]
    Setup(String),
    /// Connected, but the server does not answer.
    #[error("the server accepted the connection and does not answer")]
    Silent,
    /// An unusable pooler, with a remedy.
    #[error("{0}")]
    Pooler(String),
    /// The session has statements that locktop prepared in another session: a pooler passes sessions to other clients without
    /// a reset.
    #[error("a pooler passes sessions to other clients without a reset")]
    Lent,
    /// A server without the features that locktop reads.
    #[error("PostgreSQL {0}: locktop needs 14 or later")]
    TooOld(String),
}

impl OpenError {
    /// Whether the error may be temporary: too many connections, or starting up (SQLSTATE 53300, 57P03).
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Connect(error) if error.is_waitable())
    }

    /// Whether the server accepted the connection and then did not answer. Each further attempt may leave a process there
    /// that waits for whatever blocks the server.
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Silent => true,
            Self::Connect(error) => error.is_silence(),
            Self::Setup(_) | Self::Pooler(_) | Self::Lent | Self::TooOld(_) => false,
        }
    }
}
