//! Other executions that end with a session: a worker runs all its tasks in one.

use serde::{Deserialize, Serialize};

use super::running::Running;
use locktop_base::Timestamp;

/// An execution that was not requested, and that ends with a session that is terminated for another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlsoEnded {
    /// `task_execution_log.id` of the execution.
    pub execution_id: i64,
    /// The name of its task, as the server sent it.
    pub task_name: String,
    /// The consequence for it, in words.
    pub effect: String,
}

/// A session: its process and when it began.
pub(super) type Session = (i32, Timestamp);

pub(super) fn holder(seen: &Running) -> Option<Session> {
    seen.holder_pid.zip(seen.holder_start)
}

pub(super) fn also(seen: &Running) -> AlsoEnded {
    AlsoEnded { execution_id: seen.execution_id, task_name: seen.task_name.clone(), effect: cost(seen) }
}

/// The consequence for an execution when its session ends: sooner or later it is recovered too, as a failed attempt.
pub(super) fn cost(seen: &Running) -> String {
    let Running { attempt, max_attempts, .. } = seen;
    match (seen.gives_up(), seen.is_scheduled) {
        (false, _) => format!("loses attempt {attempt} of {max_attempts}"),
        (true, false) => format!("fails for good: attempt {attempt} of {max_attempts}"),
        (true, true) => {
            format!("failed for good after attempt {attempt} of {max_attempts}; runs next by its schedule")
        }
    }
}
