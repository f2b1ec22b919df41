//! What a worker does with a task.

use super::stop::{Stop, StopReason};
use crate::locks::scheduled_task::Execution;

/// What a worker does with a task. The loop around it takes care of the lock; the work, of nothing but itself and of `stop`.
///
/// The future is not polled while it is in doubt whether the lock is still held ([`super::gate`]). Told to stop it has five seconds to put
/// things in order and return; then it is dropped. A panic fails the execution. How long a task may take is the work's own affair:
/// the loop has no time-out.
pub trait Work: Send + Sync + 'static {
    /// Runs one execution. `Ok` completes it.
    fn run(&self, execution: &Execution, stop: Stop) -> impl Future<Output = Result<(), WorkError>> + Send;
}

/// Why an execution is not completed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// It failed: the text goes into the log, and the task is tried again as it is planned.
    #[error("{0}")]
    Failed(String),
    /// It was told to stop and did. After a shut-down its task is given back; in all other cases it is not ours any more, and
    /// nothing is written.
    #[error("{0}")]
    Stopped(StopReason),
}

impl From<StopReason> for WorkError {
    fn from(reason: StopReason) -> Self {
        Self::Stopped(reason)
    }
}
