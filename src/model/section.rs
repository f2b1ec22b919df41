//! What one statement read, and how old it is.

use std::sync::Arc;

use super::observed::Observed;
use super::{Text, Timestamp};

/// The rows of one statement of a poll. If the statement fails, the rows of the last success stay, with their own time, and `error` is the
/// reason. A section that was not read yet has neither a time nor an error.
#[derive(Debug, Clone)]
pub struct Section<T> {
    /// The rows of the last success. Private: what concludes from them asks [`Section::observed`].
    rows: Arc<Vec<T>>,
    /// Server time of the rows; none if no attempt succeeded.
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

    /// A section with all its parts, as a recording has it.
    pub fn restored(rows: Arc<Vec<T>>, taken_at: Option<Timestamp>, error: Option<Text>) -> Self {
        Self { rows, taken_at, error }
    }

    /// These rows, marked as old: the attempt after them failed.
    pub fn stale(&self, error: Text) -> Self {
        Self { rows: Arc::clone(&self.rows), taken_at: self.taken_at, error: Some(error) }
    }

    /// What is known at the time of the snapshot. Rows of an earlier attempt are not.
    pub fn observed(&self) -> Observed<&[T]> {
        match (&self.error, self.taken_at) {
            (Some(reason), _) => Observed::Unknown(reason.clone()),
            (None, Some(_)) => Observed::Read(&self.rows),
            (None, None) => Observed::Unknown(NOT_YET.into()),
        }
    }

    /// Whether the rows are those of the snapshot's time.
    pub fn is_known(&self) -> bool {
        self.error.is_none() && self.taken_at.is_some()
    }

    /// The rows, to be changed: names are hashed in a recording.
    pub fn rows_mut(&mut self) -> &mut Arc<Vec<T>> {
        &mut self.rows
    }

    /// The same with another time.
    #[cfg(test)]
    pub(crate) fn taken(self, taken_at: Option<Timestamp>) -> Self {
        Self { taken_at, ..self }
    }

    /// Other rows in place of these.
    #[cfg(test)]
    pub(crate) fn set(&mut self, rows: impl Into<Arc<Vec<T>>>) {
        self.rows = rows.into();
    }

    /// The rows of the last success, which may be old or none at all: for what shows them with their age, and for finding a row again. A test
    /// lists the files that may call it (`tests/offline/observed.rs`); what concludes from the absence of a row asks [`Section::observed`].
    pub fn last_rows(&self) -> &Arc<Vec<T>> {
        &self.rows
    }
}

/// The reason of a section of which no attempt has ended.
pub const NOT_YET: &str = "not read yet";
