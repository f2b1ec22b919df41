//! A task that was taken.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::error::SessionError;

/// One execution of a task, ours for as long as the session lasts that fetched it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Its row in `task_execution_log`.
    pub id: i64,
    /// The task.
    pub task_id: i32,
    /// Its name, with a replacement character where it is not valid UTF-8.
    pub task_name: String,
    /// What kind of work it is.
    pub task_type: String,
    /// What to do, as JSON text.
    pub payload: Option<String>,
    /// Which attempt this is, from 1 on.
    pub attempt: i32,
    /// How many there will be.
    pub max_attempts: i32,
    /// Past it the execution is slow.
    pub timeout: Duration,
    /// The key of the advisory lock that the session holds for it.
    pub lock_id: i64,
}

/// How an execution ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The work is done.
    Completed,
    /// It is not, and why.
    Failed(String),
}

impl Finish {
    pub(super) fn status(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
        }
    }

    /// The error for the log: at most so many characters, and no NUL, which no text of the server's can have.
    pub(super) fn error(&self) -> Option<String> {
        match self {
            Self::Completed => None,
            Self::Failed(reason) => {
                Some(reason.chars().filter(|character| *character != '\0').take(LONGEST_ERROR).collect())
            }
        }
    }
}

/// Most characters of an error in the log.
const LONGEST_ERROR: usize = 8000;

/// A text column as bytes. What it holds may be invalid in a database without an encoding, and must not keep a task from
/// being run, or others with it: the server would refuse the whole answer.
fn bytes(column: &str) -> String {
    format!(
        "pg_catalog.convert_to({column}, CASE WHEN pg_catalog.getdatabaseencoding() = 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END)"
    )
}

/// The columns that [`Execution::read`] expects, of a row `f` of `fetch_tasks`.
pub(super) fn columns() -> String {
    format!(
        "f.execution_id, f.task_id, {}, {}, {}, f.attempt, f.max_attempts, f.timeout_seconds, f.lock_id",
        bytes("f.task_name"),
        bytes("f.task_type"),
        bytes("f.payload::text")
    )
}

impl Execution {
    /// A row of [`columns`].
    pub(super) fn read(row: &Row) -> Result<Self, SessionError> {
        // An answer that cannot be read leaves tasks taken and not run: only the end of the session gives them back.
        let failed = |error: tokio_postgres::Error| {
            SessionError::Lost(format!("fetch_tasks gave something unexpected: {error}"))
        };
        let text = |index: usize| -> Result<Option<String>, SessionError> {
            debug_assert_eq!(row.columns().get(index).map(tokio_postgres::Column::type_), Some(&Type::BYTEA));
            let bytes: Option<&[u8]> = row.try_get(index).map_err(failed)?;
            Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
        };
        let seconds: Option<f64> = row.try_get(7).map_err(failed)?;
        Ok(Self {
            id: row.try_get(0).map_err(failed)?,
            task_id: row.try_get(1).map_err(failed)?,
            task_name: text(2)?.unwrap_or_default(),
            task_type: text(3)?.unwrap_or_default(),
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
