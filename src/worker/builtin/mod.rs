//! The work that `locktop worker` does.

mod payload;
mod place;
mod sql;

use super::stop::Stop;
use super::work::{Work, WorkError};
use super::{Execution, WorkerId};
use crate::pg::conninfo::ConnInfo;
use payload::Payload;

/// The task types it knows, each with its payload:
///
/// - `sleep`, `{"seconds": 1.5}`: does nothing for so long;
/// - `sql`, `{"statement": "…"}`: one statement, on a connection of its own.
///
/// Both end when the task's timeout is over, and fail then: a worker that lives enforces the limit itself, so that a recovery only has
/// to deal with those that do not. A number of seconds as `timeout` in the payload takes the place of the task's, and is no longer. A task
/// of any other type, or with another payload, fails.
///
/// A statement waits for its connection while the server has none left, and for the statement of a worker that lost the same task to
/// end: that time counts.
#[derive(Debug, Clone)]
pub struct Builtin {
    info: ConnInfo,
}

impl Builtin {
    /// `sql` runs where `info` leads, as the same role.
    #[must_use]
    pub fn new(info: ConnInfo, worker: &WorkerId) -> Self {
        // Cut by the server, and without what it would put a question mark for.
        Self { info: info.with_application_name(&format!("locktop task of {worker}")) }
    }
}

impl Work for Builtin {
    async fn run(&self, execution: &Execution, stop: Stop) -> Result<(), WorkError> {
        let payload = Payload::read(execution).map_err(WorkError::Failed)?;
        let limit = payload.timeout.unwrap_or(execution.timeout);
        match payload.what {
            payload::What::Sleep(time) => tokio::select! {
                biased;
                reason = stop.stopped() => Err(WorkError::Stopped(reason)),
                () = tokio::time::sleep(time) => Ok(()),
                () = tokio::time::sleep(limit) => Err(WorkError::Failed(timed_out(limit))),
            },
            payload::What::Sql(statement) => {
                sql::run(&self.info, execution.task_id.into(), &statement, limit, &stop).await
            }
        }
    }
}

fn timed_out(limit: std::time::Duration) -> String {
    format!("timed out after {} s", limit.as_secs_f64())
}
