use std::sync::Arc;

use crate::model::{Text, Timestamp};

/// The rows of one statement of a poll. If the statement fails, the rows of the last success stay, with their own time, and
/// `error` is the reason. A section that was not read yet has neither a time nor an error.
#[derive(Debug, Clone)]
pub struct Section<T> {
    /// The rows of the last success. Private: code that draws conclusions from them calls [`Section::observed`].
    rows: Arc<Vec<T>>,
    /// Server time of the rows; `None` if no attempt succeeded.
    pub taken_at: Option<Timestamp>,
    pub error: Option<Text>,
    /// There are more rows than were read.
    pub is_cut: bool,
}

impl<T> Default for Section<T> {
    fn default() -> Self {
        Self { rows: Arc::default(), taken_at: None, error: None, is_cut: false }
    }
}

impl<T> Section<T> {
    pub fn fresh(rows: Vec<T>, taken_at: Timestamp) -> Self {
        Self::shared(Arc::new(rows), taken_at)
    }

    /// The same for rows that may be shared with an earlier snapshot if they have not changed.
    pub fn shared(rows: Arc<Vec<T>>, taken_at: Timestamp) -> Self {
        Self::restored(rows, Some(taken_at), None)
    }

    pub fn restored(rows: Arc<Vec<T>>, taken_at: Option<Timestamp>, error: Option<Text>) -> Self {
        Self { rows, taken_at, error, is_cut: false }
    }

    pub fn cut(self, is_cut: bool) -> Self {
        Self { is_cut, ..self }
    }

    /// The same rows, marked as old because a later attempt failed.
    pub fn stale(&self, error: Text) -> Self {
        Self { rows: Arc::clone(&self.rows), error: Some(error), ..*self }
    }

    /// What is known at the time of the snapshot; rows of an earlier attempt do not count.
    pub fn observed(&self) -> Observed<&[T]> {
        match (&self.error, self.taken_at) {
            (Some(reason), _) => Observed::Unknown(reason.clone()),
            (None, Some(_)) => Observed::Read(&self.rows),
            (None, None) => Observed::Unknown(NOT_YET.into()),
        }
    }

    pub fn is_known(&self) -> bool {
        self.error.is_none() && self.taken_at.is_some()
    }

    /// The rows, to be modified: a recording hashes names.
    pub fn rows_mut(&mut self) -> &mut Arc<Vec<T>> {
        &mut self.rows
    }

    #[cfg(test)]
    pub(crate) fn taken(self, taken_at: Option<Timestamp>) -> Self {
        Self { taken_at, ..self }
    }

    #[cfg(test)]
    pub(crate) fn set(&mut self, rows: impl Into<Arc<Vec<T>>>) {
        self.rows = rows.into();
    }

    /// The rows of the last success, which may be old or missing: for showing them with their age, and for finding a row again.
    /// A test lists the files that may call it (`tests/offline/observed.rs`). Code that concludes from the absence of a row
    /// calls [`Section::observed`].
    pub fn last_rows(&self) -> &Arc<Vec<T>> {
        &self.rows
    }
}

/// The reason of a section for which no attempt has finished.
pub const NOT_YET: &str = "not read yet";

/// The result of a read. It cannot be converted to a list or a number: an unknown value stays unknown until it is printed.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed<T> {
    Read(T),
    /// It does not exist here: the lookup succeeded and found nothing, or nothing of that kind is configured.
    Absent,
    /// It could not be read, or not yet; the reason in one line.
    Unknown(Text),
}

impl<T> Observed<T> {
    pub fn map<U>(self, value: impl FnOnce(T) -> U) -> Observed<U> {
        self.and_then(|read| Observed::Read(value(read)))
    }

    pub fn and_then<U>(self, value: impl FnOnce(T) -> Observed<U>) -> Observed<U> {
        match self {
            Self::Read(read) => value(read),
            Self::Absent => Observed::Absent,
            Self::Unknown(reason) => Observed::Unknown(reason),
        }
    }

    /// Why it is unknown; `None` if it was read or does not exist.
    pub fn reason(&self) -> Option<&Text> {
        match self {
            Self::Unknown(reason) => Some(reason),
            _ => None,
        }
    }
}
