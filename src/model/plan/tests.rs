mod breaks;
mod chains;
mod hands;
mod kept;
mod moved;
mod properties;
mod rows;
mod sessions;

use super::*;
use crate::model::Timestamp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
}

pub(crate) fn slow() -> RunningExecution {
    RunningExecution {
        execution_id: 7,
        task_id: 1,
        task_name: "report".to_owned(),
        worker_id: "w".to_owned(),
        state: RunState::Slow,
        started_at: Some(at(0)),
        heartbeat_at: Some(at(90)),
        run_seconds: Some(3_600.0),
        timeout_seconds: Some(1_800.0),
        attempt: 2,
        max_attempts: 3,
        retry_seconds: Some(20.0),
        is_scheduled: true,
        is_enabled: true,
        lock_id: Some(42),
        holder_pid: Some(4312),
        holder_start: Some(at(-5)),
        held_by_prepared: false,
        backend_pid: Some(4312),
        backend_start: Some(at(-5)),
    }
}

pub(crate) fn orphan() -> RunningExecution {
    RunningExecution { state: RunState::Orphan, holder_pid: None, holder_start: None, ..slow() }
}
