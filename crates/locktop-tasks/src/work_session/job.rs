use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::error::SessionError;
use super::source::Source;
use crate::schema::Log;

/// One execution of a task or one attempt at an item. It belongs to the session that took it until that session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The table that it was taken from.
    pub source: Source,
    /// Its row in `task_execution_log` or in `task_queue`.
    pub id: i64,
    /// The task; for an item, the item itself.
    pub task_id: i64,
    /// Its name, with a replacement character for each part that is not valid UTF-8.
    pub name: String,
    /// The kind of work: a task's type, an item's name.
    pub kind: String,
    /// The payload as JSON text; `None` if the column is NULL.
    pub json: Option<String>,
    /// The number of this attempt, from 1.
    pub attempt: i32,
    /// The maximum number of attempts.
    pub max_attempts: i32,
    /// The time limit; the longest duration if there is none.
    pub timeout: Duration,
    /// The advisory lock key that the session holds for it.
    pub lock_id: i64,
}

impl Job {
    /// The payload; a missing one is read as null.
    ///
    /// # Errors
    /// If the payload has another type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.json.as_deref().unwrap_or("null"))
    }
}

/// A job that a heartbeat found to be still held by this session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ours {
    /// [`Job::id`]: its row in `task_execution_log` or in `task_queue`.
    pub id: i64,
    /// The attempt, if a row has several.
    pub attempt: Option<i32>,
}

impl Ours {
    /// Whether this is that job, in the same attempt.
    #[must_use]
    pub fn is(self, job: &Job) -> bool {
        self.id == job.id && self.attempt.is_none_or(|attempt| attempt == job.attempt)
    }
}

/// An item that a session left behind, and the action taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requeued {
    /// `task_queue.id` of the item.
    pub id: i64,
    /// False if it was set aside after its last attempt.
    pub again: bool,
    /// The server's report on the session that had it, in one line.
    pub detail: String,
}

/// One step of removing log rows past their retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// The log that rows are removed from.
    pub log: Log,
    /// The retention, as formatted by the server.
    pub keep: String,
    /// Rows that this step removed.
    pub rows: i64,
    /// Whether the role may remove rows; without the privilege nothing is tried.
    pub may: bool,
}

/// How a worker ended a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The work is done: the row becomes `completed`.
    Completed,
    /// The work failed, for this reason. It is retried, up to its last attempt.
    Failed(String),
    /// The work can never succeed, for this reason. An item is set aside at once; a task is retried as after a failure.
    Refused(String),
}

impl Finish {
    pub(super) fn status(&self, source: Source) -> &'static str {
        match (self, source) {
            (Self::Completed, _) => "completed",
            // Pending again, or failed after the last attempt.
            (Self::Failed(_), Source::Queue) => "pending",
            (Self::Failed(_) | Self::Refused(_), _) => "failed",
        }
    }

    /// The error for the row, shortened and without NUL, which the server's text type cannot store.
    pub(super) fn error(&self) -> Option<String> {
        match self {
            Self::Completed => None,
            Self::Failed(reason) | Self::Refused(reason) => {
                Some(reason.chars().filter(|character| *character != '\0').take(LONGEST_ERROR).collect())
            }
        }
    }
}

/// In characters.
const LONGEST_ERROR: usize = 8000;

impl Job {
    pub(super) fn read(source: Source, row: &Row) -> Result<Self, SessionError> {
        // An unreadable answer leaves work taken and not done: only the end of the session releases it.
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
            json: text(4)?,
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
