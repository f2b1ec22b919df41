//! Why bytes are no look.

/// Why a look cannot be kept or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is larger than any that is read.
    #[error("the look is too large to be kept")]
    TooLarge,
    /// What is there is no look.
    #[error("the look is damaged")]
    Damaged,
    /// It needs one before it that is not there.
    #[error("the look has no beginning")]
    NoKey,
    /// It was made for a later release.
    #[error("a later release of locktop is needed to read this")]
    Later,
    /// There is no snapshot in it.
    #[error("there is nothing to keep")]
    Empty,
}
