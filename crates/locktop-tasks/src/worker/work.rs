use super::stop::{Stop, StopReason};
use crate::work_session::Job;

/// The work of a job: an execution of a task, or an item of the queue. The worker loop takes care of the lock; the work
/// only of itself and of `stop`.
///
/// The future is not polled while it is in doubt whether the lock is still held ([`super::gate`]). Once told to stop,
/// it has five seconds to clean up and return; then it is dropped. A panic fails the job. The work enforces its own
/// time limit: the loop has none.
pub trait Work: Send + Sync + 'static {
    /// Runs one job. `Ok` completes it.
    fn run(&self, job: &Job, stop: Stop) -> impl Future<Output = Result<(), WorkError>> + Send;
}

/// Why a job is not completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The work failed, with the text for its row. It is retried after a pause, up to its last attempt.
    #[error("{0}")]
    Failed(String),
    /// The work is impossible: an item is set aside, with the text in its row. A task fails as by [`Self::Failed`].
    #[error("{0}")]
    Refused(String),
    /// The work was told to stop, and did. After a shutdown the job is returned; in all other cases it no longer belongs to
    /// this session, and nothing is written.
    #[error("{0}")]
    Stopped(StopReason),
}

impl From<StopReason> for WorkError {
    fn from(reason: StopReason) -> Self {
        Self::Stopped(reason)
    }
}
