//! Rows of the parts, in the order of their columns ([`Part::columns`]).

use bytes::Bytes;

use crate::model::adapter::{AdapterLease, AdapterSchedule, Depth, Job, Part, Paused, Worker};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};
use crate::pg::decode::DecodeError;
use crate::pg::decode::copy::{CopyReader, Fields};
use crate::pg::decode::texts::Texts;
use crate::pg::decode::value::{boolean, float8, int8, timestamp};

/// Characters of a text that are kept.
pub(super) const CHARACTERS: usize = 500;

/// A row of a part.
pub(super) trait PartRow: Sized {
    /// Reads one; None for one that cannot be told from others.
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError>;
}

/// All rows.
pub(super) fn rows<T: PartRow>(
    part: Part,
    messages: &[Bytes],
    texts: &mut Texts,
) -> Result<Vec<T>, DecodeError> {
    let (mut reader, mut rows) = (CopyReader::default(), Vec::new());
    for message in messages {
        reader.read(message, part.columns().len(), |fields| {
            rows.extend(T::read(&mut Values { fields, texts })?);
            Ok(())
        })?;
    }
    Ok(rows)
}

/// The values of a row, one after the other.
pub(super) struct Values<'a, 'b> {
    fields: &'a mut Fields<'b>,
    texts: &'a mut Texts,
}

impl Values<'_, '_> {
    fn text(&mut self) -> Result<Option<Text>, DecodeError> {
        let Some(text) = self.texts.get(self.fields.value()?) else { return Ok(None) };
        Ok(Some(match text.char_indices().nth(CHARACTERS) {
            Some((end, _)) => self.texts.intern(text.get(..end).unwrap_or_default()),
            None => text,
        }))
    }

    fn int(&mut self) -> Result<Option<i64>, DecodeError> {
        Ok(int8(self.fields.value()?))
    }

    /// A number of 32 bits; one that is too large is none.
    fn small(&mut self) -> Result<Option<i32>, DecodeError> {
        Ok(self.int()?.and_then(|number| i32::try_from(number).ok()))
    }

    fn number(&mut self) -> Result<Option<f64>, DecodeError> {
        Ok(float8(self.fields.value()?).filter(|number| number.is_finite()))
    }

    fn time(&mut self) -> Result<Option<Timestamp>, DecodeError> {
        Ok(timestamp(self.fields.value()?))
    }

    fn flag(&mut self) -> Result<Option<bool>, DecodeError> {
        Ok(boolean(self.fields.value()?))
    }
}

impl PartRow for Job {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let (id, state) = (row.text()?, row.text()?);
        let mut job = Self {
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
            ..Self::default()
        };
        let (key, class, object) = (row.int()?, row.small()?, row.small()?);
        job.key = key.map(LockKey::Bigint).or_else(|| Some(LockKey::Pair(class?, object?)));
        job.backend_pid = row.small()?;
        job.beat_at = row.time()?;
        job.lease_until = row.time()?;
        job.blocked_by = row.text()?;
        job.error = row.text()?;
        job.note = row.text()?;
        job.concurrency_key = row.text()?;
        job.stuck = row.text()?;
        Ok(id.zip(state).map(|(id, state)| Self { id, state, ..job }))
    }
}

impl PartRow for Worker {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let id = row.text()?;
        let worker = Self {
            id: Text::default(),
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
        };
        Ok(id.map(|id| Self { id, ..worker }))
    }
}

impl PartRow for Depth {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let (queue, state, number) = (row.text()?, row.text()?, row.int()?);
        let (is_estimate, oldest_at) = (row.flag()?.unwrap_or_default(), row.time()?);
        let known = state.zip(number);
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
        let id = row.text()?;
        let lease = Self {
            id: Text::default(),
            owner: row.text()?,
            token: row.text()?,
            note: row.text()?,
            acquired_at: row.time()?,
            expires_at: row.time()?,
            is_held: row.flag()?,
        };
        Ok(id.map(|id| Self { id, ..lease }))
    }
}

impl PartRow for AdapterSchedule {
    fn read(row: &mut Values<'_, '_>) -> Result<Option<Self>, DecodeError> {
        let id = row.text()?;
        let schedule = Self {
            id: Text::default(),
            name: row.text()?,
            schedule: row.text()?,
            queue: row.text()?,
            next_run_at: row.time()?,
            last_run_at: row.time()?,
            is_enabled: row.flag()?,
        };
        Ok(id.map(|id| Self { id, ..schedule }))
    }
}
