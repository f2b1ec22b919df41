//! What was read by one statement, and how old it is.

use std::sync::Arc;

use super::{Text, Timestamp};

/// The rows of one statement of a poll. When the statement fails the rows of the last success stay, with their
/// own time, and `error` says why they are old.
#[derive(Debug, Clone)]
pub struct Section<T> {
    /// The rows, as the server gave them.
    pub rows: Arc<Vec<T>>,
    /// Server time of the rows; none when they were never read.
    pub taken_at: Option<Timestamp>,
    /// Why the last attempt failed, in one line.
    pub error: Option<Text>,
}

impl<T> Default for Section<T> {
    fn default() -> Self {
        Self { rows: Arc::default(), taken_at: None, error: None }
    }
}

impl<T> Section<T> {
    /// Rows that were read at `taken_at`.
    pub fn fresh(rows: Vec<T>, taken_at: Timestamp) -> Self {
        Self::shared(Arc::new(rows), taken_at)
    }

    /// The same for rows that may be those of an earlier snapshot: then nothing has changed in them.
    pub fn shared(rows: Arc<Vec<T>>, taken_at: Timestamp) -> Self {
        Self { rows, taken_at: Some(taken_at), error: None }
    }

    /// These rows, marked as old: the attempt after them failed.
    pub fn stale(&self, error: Text) -> Self {
        Self { rows: Arc::clone(&self.rows), taken_at: self.taken_at, error: Some(error) }
    }
}
