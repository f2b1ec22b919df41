//! Decodes rows of the parts, in the order of their columns ([`Part::columns`]).

use crate::model::adapter::{AdapterLease, AdapterSchedule, Depth, Job, Paused, Worker};
use crate::model::lock_key::LockKey;
use crate::pg::decode::DecodeError;
use crate::pg::decode::row::Values;

pub(super) trait PartRow: Sized {
    /// None if the row cannot be distinguished from others.
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError>;
}

impl PartRow for Job {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let (Some(id), Some(state)) = (row.text()?, row.text()?) else { return Ok(None) };
        Ok(Some(Self {
            id,
            state,
            name: row.text()?,
            queue: row.text()?,
            priority: row.int()?,
            attempt: row.int()?,
            max_attempts: row.int()?,
            due_at: row.time()?,
            started_at: row.time()?,
            finished_at: row.time()?,
            limit: row.number()?,
            worker: row.text()?,
            key: key(row)?,
            backend_pid: row.small()?,
            beat_at: row.time()?,
            lease_until: row.time()?,
            blocked_by: row.text()?,
            error: row.text()?,
            note: row.text()?,
            concurrency_key: row.text()?,
            stuck: row.text()?,
        }))
    }
}

/// The key of a job: one bigint or two integers.
fn key(row: &mut Values<'_, '_>) -> Result<Option<LockKey>, DecodeError> {
    let (key, class, object) = (row.int()?, row.small()?, row.small()?);
    Ok(key.map(LockKey::Bigint).or_else(|| Some(LockKey::Pair(class?, object?))))
}

impl PartRow for Worker {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let Some(id) = row.text()? else { return Ok(None) };
        Ok(Some(Self {
            id,
            name: row.text()?,
            host: row.text()?,
            kind: row.text()?,
            queues: row.text()?,
            pid: row.int()?,
            capacity: row.int()?,
            busy: row.int()?,
            started_at: row.time()?,
            beat_at: row.time()?,
            stopped_at: row.time()?,
            beat_limit: row.number()?,
            key: row.int()?.map(LockKey::Bigint),
            backend_pid: row.small()?,
            sessions: row.int()?,
        }))
    }
}

impl PartRow for Depth {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let (queue, state, number) = (row.text()?, row.text()?, row.int()?);
        let (is_estimate, oldest_at) = (row.flag()?.unwrap_or_default(), row.time()?);
        // `pg_class.reltuples` is negative for a table that was never counted.
        let known = state.zip(number.filter(|number| *number >= 0));
        Ok(known.map(|(state, number)| Self { queue, state, number, is_estimate, oldest_at }))
    }
}

impl PartRow for Paused {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let (queue, since) = (row.text()?, row.time()?);
        Ok(queue.map(|queue| Self { queue, since }))
    }
}

impl PartRow for AdapterLease {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let Some(id) = row.text()? else { return Ok(None) };
        Ok(Some(Self {
            id,
            owner: row.text()?,
            token: row.text()?,
            note: row.text()?,
            acquired_at: row.time()?,
            expires_at: row.time()?,
            is_held: row.flag()?,
            key: row.int()?.map(LockKey::Bigint),
        }))
    }
}

impl PartRow for AdapterSchedule {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let Some(id) = row.text()? else { return Ok(None) };
        Ok(Some(Self {
            id,
            name: row.text()?,
            schedule: row.text()?,
            queue: row.text()?,
            next_run_at: row.time()?,
            last_run_at: row.time()?,
            is_enabled: row.flag()?,
        }))
    }
}
