//! Why bytes are not a snapshot.

/// Why a snapshot cannot be kept or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is larger than any that is read.
    #[error("the snapshot is too large to be kept")]
    TooLarge,
    /// The bytes are not a snapshot.
    #[error("the snapshot is damaged")]
    Damaged,
    /// It needs an earlier one that is missing.
    #[error("the snapshot needs an earlier one that is missing")]
    NoKey,
    /// It was made for a later release.
    #[error("a later release of locktop is needed to read this")]
    Later,
    /// There is no snapshot in it.
    #[error("there is nothing to keep")]
    Empty,
}
