//! What a worker does with a job.

use super::stop::{Stop, StopReason};
use crate::work_session::Job;

/// What a worker does with a job: an execution of a task, or an item of the queue. The loop around it takes care of the lock; the work, of nothing but itself and of `stop`.
///
/// The future is not polled while it is in doubt whether the lock is still held ([`super::gate`]). Told to stop it has five seconds to put
/// things in order and return; then it is dropped. A panic fails the job. How long it may take is the work's own affair:
/// the loop has no time-out.
pub trait Work: Send + Sync + 'static {
    /// Does one. `Ok` completes it.
    fn run(&self, job: &Job, stop: Stop) -> impl Future<Output = Result<(), WorkError>> + Send;
}

/// Why a job is not completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// It failed: the text goes into its row. It is tried again after a pause, up to its last attempt.
    #[error("{0}")]
    Failed(String),
    /// It cannot be done at all: an item is set aside, with the text in its row. A task fails as by [`Self::Failed`].
    #[error("{0}")]
    Refused(String),
    /// It was told to stop and did. After a shut-down it is given back; in all other cases it is not ours any more, and
    /// nothing is written.
    #[error("{0}")]
    Stopped(StopReason),
}

impl From<StopReason> for WorkError {
    fn from(reason: StopReason) -> Self {
        Self::Stopped(reason)
    }
}
