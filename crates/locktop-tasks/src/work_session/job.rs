//! What was taken.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::error::SessionError;
use super::source::Source;
use crate::schema::Log;

/// One execution of a task or one attempt at an item, ours for as long as the session lasts that took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The table that it was taken from.
    pub source: Source,
    /// Its row: in `task_execution_log`, or in `task_queue`.
    pub id: i64,
    /// The task; for an item, the item itself.
    pub task_id: i64,
    /// What it is called, with a replacement character where that is not valid UTF-8.
    pub name: String,
    /// What kind of work it is: a task's type, an item's name.
    pub kind: String,
    /// What to do, as JSON text; none where the column is NULL.
    pub payload: Option<String>,
    /// Which attempt this is, from 1 on.
    pub attempt: i32,
    /// Attempts that it has altogether.
    pub max_attempts: i32,
    /// How long it may take; the longest duration where nothing limits it.
    pub timeout: Duration,
    /// The key of the advisory lock that the session holds for it.
    pub lock_id: i64,
}

/// What a heartbeat found to be still ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ours {
    /// [`Job::id`]: its row in `task_execution_log`, or in `task_queue`.
    pub id: i64,
    /// Which attempt, where a row has several.
    pub attempt: Option<i32>,
}

impl Ours {
    /// Whether this is the job that was found to be ours, in the same attempt.
    #[must_use]
    pub fn is(self, job: &Job) -> bool {
        self.id == job.id && self.attempt.is_none_or(|attempt| attempt == job.attempt)
    }
}

/// An item that a session left behind, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeued {
    /// `task_queue.id` of the item.
    pub id: i64,
    /// False when it was set aside, after its last attempt.
    pub again: bool,
    /// What was seen of the session that had it, in one line of the server's.
    pub detail: String,
}

/// One step of removing the rows of a log that are past their retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// The log that they are removed from.
    pub log: Log,
    /// For how long rows are kept, as the server writes it.
    pub keep: String,
    /// Rows that this step removed.
    pub rows: i64,
    /// Whether the role may remove any: without the privilege nothing is tried.
    pub may: bool,
}

/// What a worker says of a job when its work is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The work is done: the row becomes `completed`.
    Completed,
    /// It is not, and why. It is tried again, up to its last attempt.
    Failed(String),
    /// It never will be, and why. An item is set aside at once; a task is tried again as if it had failed.
    Refused(String),
}

impl Finish {
    pub(super) fn status(&self, source: Source) -> &'static str {
        match (self, source) {
            (Self::Completed, _) => "completed",
            // Pending again; failed when it was the last attempt.
            (Self::Failed(_), Source::Queue) => "pending",
            (Self::Failed(_) | Self::Refused(_), _) => "failed",
        }
    }

    /// The error for the row: at most so many characters, and no NUL, which no text of the server's can have.
    pub(super) fn error(&self) -> Option<String> {
        match self {
            Self::Completed => None,
            Self::Failed(reason) | Self::Refused(reason) => {
                Some(reason.chars().filter(|character| *character != '\0').take(LONGEST_ERROR).collect())
            }
        }
    }
}

/// Most characters of an error in a row.
const LONGEST_ERROR: usize = 8000;

impl Job {
    /// A row of what fetches from `source`.
    pub(super) fn read(source: Source, row: &Row) -> Result<Self, SessionError> {
        // An answer that cannot be read leaves work taken and not done: only the end of the session gives them back.
        let failed = |error: tokio_postgres::Error| {
            SessionError::Lost(format!("taking {} returned something unexpected: {error}", source.plural()))
        };
        let text = |index: usize| -> Result<Option<String>, SessionError> {
            debug_assert_eq!(row.columns().get(index).map(tokio_postgres::Column::type_), Some(&Type::BYTEA));
            let bytes: Option<&[u8]> = row.try_get(index).map_err(failed)?;
            Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        };
        let seconds: Option<f64> = row.try_get(7).map_err(failed)?;
        Ok(Self {
            source,
            id: row.try_get(0).map_err(failed)?,
            task_id: row.try_get(1).map_err(failed)?,
            name: text(2)?.unwrap_or_default(),
            kind: text(3)?.unwrap_or_default(),
            payload: text(4)?,
            attempt: row.try_get(5).map_err(failed)?,
            max_attempts: row.try_get(6).map_err(failed)?,
            timeout: Duration::try_from_secs_f64(seconds.unwrap_or(f64::MAX)).unwrap_or(Duration::MAX),
            lock_id: row.try_get(8).map_err(failed)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_fits_into_the_log() {
        let error = Finish::Failed(format!("a\0b{}", "x".repeat(20_000))).error().unwrap();
        assert!(error.starts_with("abxx"));
        assert_eq!(error.len(), LONGEST_ERROR);
        assert_eq!(Finish::Completed.error(), None);
    }
}
