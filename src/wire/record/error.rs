#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the snapshot is too large to be kept")]
    TooLarge,
    #[error("the snapshot is damaged")]
    Damaged,
    #[error("the snapshot needs an earlier one that is missing")]
    NoKey,
    #[error("a later release of locktop is needed to read this")]
    Later,
    #[error("there is nothing to keep")]
    Empty,
}
