//! Rows of the task tables: the columns are those of `statements`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::statements::{EACH, EXECUTION, SCHEDULE};
use crate::model::task::{Execution, Schedule};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::CopyReader;
use crate::pg::decode::texts::Texts;
use crate::pg::decode::value::{boolean, float8, int8, timestamp};

/// The schedules in the messages of one COPY.
///
/// # Errors
/// When they are not what the protocol promises.
pub(super) fn schedules(messages: &[bytes::Bytes], texts: &mut Texts) -> Result<Vec<Schedule>, DecodeError> {
    let (mut reader, mut rows) = (CopyReader::default(), Vec::with_capacity(messages.len()));
    for message in messages {
        reader.read(message, SCHEDULE.len(), |fields| {
            let Some(id) = int8(fields.value()?) else { return Ok(()) };
            rows.push(Schedule {
                id,
                name: texts.get(fields.value()?),
                kind: texts.get(fields.value()?),
                cron: texts.get(fields.value()?),
                enabled: boolean(fields.value()?),
                last_run_at: timestamp(fields.value()?),
                next_run_at: timestamp(fields.value()?),
                priority: int8(fields.value()?),
                timeout: float8(fields.value()?).filter(|seconds| seconds.is_finite()),
                max_attempts: int8(fields.value()?),
                attempts: int8(fields.value()?),
                key: int8(fields.value()?),
            });
            Ok(())
        })?;
    }
    Ok(rows)
}

/// The executions in the messages of one COPY.
///
/// # Errors
/// When they are not what the protocol promises.
pub(super) fn executions(
    messages: &[bytes::Bytes],
    texts: &mut Texts,
) -> Result<Vec<Execution>, DecodeError> {
    let (mut reader, mut rows) = (CopyReader::default(), Vec::with_capacity(messages.len()));
    for message in messages {
        reader.read(message, EXECUTION.len(), |fields| {
            let (Some(id), Some(task_id)) = (int8(fields.value()?), int8(fields.value()?)) else {
                return Ok(());
            };
            rows.push(Execution {
                id,
                task_id,
                worker: texts.get(fields.value()?),
                status: texts.get(fields.value()?),
                started_at: timestamp(fields.value()?),
                completed_at: timestamp(fields.value()?),
                error: texts.get(fields.value()?),
                lock_id: int8(fields.value()?),
                backend_pid: int8(fields.value()?).and_then(|pid| i32::try_from(pid).ok()),
                backend_start: timestamp(fields.value()?),
                attempt: int8(fields.value()?),
                heartbeat_at: timestamp(fields.value()?),
                recovered_by: texts.get(fields.value()?),
            });
            Ok(())
        })?;
    }
    Ok(rows)
}

/// Each once, newest first, with no more than the last few of each task beside those that run.
pub(super) fn last_of_each(mut rows: Vec<Execution>) -> Vec<Execution> {
    rows.sort_by_key(|row| std::cmp::Reverse((row.started_at, row.id)));
    let mut seen = FxHashSet::default();
    let mut finished: FxHashMap<i64, usize> = FxHashMap::default();
    rows.retain(|row| {
        let count = finished.entry(row.task_id).or_default();
        *count += usize::from(!row.is_running());
        seen.insert(row.id) && (row.is_running() || *count <= EACH)
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn running_ones_and_the_last_five_of_each_task_are_kept_once() {
        let row = |id: i64, task_id, status: &str| Execution {
            id,
            task_id,
            status: Some(status.into()),
            started_at: Timestamp::from_timestamp(id, 0),
            ..Execution::default()
        };
        let mut rows: Vec<Execution> = (10..20).map(|id| row(id, 1, "failed")).collect();
        rows.push(row(3, 1, "running"));
        rows.push(row(3, 1, "running"));
        rows.push(Execution { started_at: None, ..row(30, 2, "completed") });
        let kept: Vec<i64> = last_of_each(rows).iter().map(|row| row.id).collect();
        assert_eq!(kept, [19, 18, 17, 16, 15, 3, 30]);
    }
}
