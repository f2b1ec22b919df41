use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Row, Statement};

use super::known::Telling;
use super::safe_snapshot::SafeSnapshotWait;
use crate::model::Timestamp;
use crate::model::backend::Backend;
use crate::model::snapshot::Replay;
use crate::model::wait_graph::Answer;
use crate::pg::decode::backends::Backends;
use crate::pg::decode::locks::{KnownLocks, Locks, Reader};
use crate::pg::decode::prepared::PreparedRows;
use crate::pg::decode::texts::Encodings;
use crate::pg::decode::value::{boolean, int4, int4_array, int8, timestamp};
use crate::pg::section_error::SectionError;

/// Memory limit for the rows of a section: enough for more than 400,000 locks.
const MOST: usize = 32 << 20;

/// Bytes per row: of a lock, and of another section in addition to its texts.
const LOCK: usize = size_of::<crate::model::lock::Lock>();
const ROW: usize = 400;

/// The rest of `MOST`.
struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST)
    }
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), SectionError> {
        self.0 = self.0.checked_sub(bytes).ok_or(SectionError::TooMuch(MOST >> 20))?;
        Ok(())
    }
}

#[derive(Debug)]
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// None for NULL and for a missing column.
pub(in crate::pg) fn raw(row: &Row, column: usize) -> Option<&[u8]> {
    row.try_get::<_, Raw<'_>>(column).ok()?.0
}

#[derive(Debug, Clone)]
pub(super) struct Tick {
    pub(super) at: Option<Timestamp>,
    pub(super) in_recovery: bool,
    pub(super) replayed_at: Option<Timestamp>,
    pub(super) replay: Replay,
    /// The number of deadlocks, and the databases it covers.
    pub(super) deadlocks: Option<(i64, Arc<[u32]>)>,
    pub(super) pid: Option<i32>,
}

pub(super) async fn tick(
    client: &Client,
    statement: &Statement,
    databases: &[u32],
) -> Result<Tick, SectionError> {
    let row = client.query_one(statement, &[&databases]).await?;
    Ok(Tick {
        at: timestamp(raw(&row, 0)),
        in_recovery: boolean(raw(&row, 1)).unwrap_or_default(),
        replayed_at: timestamp(raw(&row, 2)),
        replay: match (boolean(raw(&row, 3)), boolean(raw(&row, 4))) {
            (Some(true), Some(true)) => Replay::All,
            (Some(true), _) => Replay::Some,
            _ => Replay::Nothing,
        },
        deadlocks: int8(raw(&row, 5)).map(|deadlocks| (deadlocks, databases.into())),
        pid: int4(raw(&row, 6)),
    })
}

#[derive(Debug, Default)]
pub(super) struct Blocking {
    pub(super) answers: Vec<Answer>,
    pub(super) safe_snapshots: Vec<SafeSnapshotWait>,
}

/// Asks about waiters for locks and for safe snapshots.
pub(super) async fn blocking(
    client: &Client,
    statement: Option<&Statement>,
    asked: &[(i32, Option<Timestamp>)],
    safe_snapshots: &[i32],
) -> Result<Blocking, SectionError> {
    let mut blocking = Blocking::default();
    let Some(statement) = statement.filter(|_| !asked.is_empty() || !safe_snapshots.is_empty()) else {
        return Ok(blocking);
    };
    let pids: Vec<i32> = asked.iter().map(|waiter| waiter.0).collect();
    for row in client.query(statement, &[&pids, &safe_snapshots]).await? {
        let Some((waiter, blockers)) = int4(raw(&row, 0)).zip(int4_array(raw(&row, 1))) else { continue };
        if boolean(raw(&row, 2)) == Some(true) {
            blocking.safe_snapshots.push(SafeSnapshotWait { waiter, blockers });
        } else if let Some((_, wait_start)) = asked.iter().find(|asked| asked.0 == waiter) {
            blocking.answers.push(Answer { waiter, wait_start: *wait_start, blockers });
        }
    }
    Ok(blocking)
}

/// Sends what is known from the last poll, for the statements after this one.
pub(super) async fn tell(
    client: &Client,
    statement: &Statement,
    telling: &Telling,
) -> Result<(), SectionError> {
    let Telling { poll, since, digests, .. } = telling;
    client.query_one(statement, &[poll, since, digests]).await?;
    Ok(())
}

pub(super) async fn locks(
    client: &Client,
    statement: &Statement,
    reader: Reader,
    before: &KnownLocks,
    poll: &str,
) -> Result<KnownLocks, SectionError> {
    let mut messages = pin!(client.copy_out(statement).await?);
    let mut locks = Locks::new(reader, before, poll);
    let mut room = Room::default();
    while let Some(message) = messages.try_next().await? {
        // None of its bytes are kept.
        room.take(LOCK)?;
        locks.read(&message)?;
    }
    Ok(locks.finish()?)
}

pub(super) async fn backends(
    client: &Client,
    statement: &Statement,
    mut backends: Backends<'_>,
) -> Result<(Vec<Backend>, String), SectionError> {
    let mut messages = pin!(client.copy_out(statement).await?);
    let mut room = Room::default();
    while let Some(message) = messages.try_next().await? {
        room.take(message.len() + ROW)?;
        backends.read(&message)?;
    }
    Ok(backends.finish()?)
}

pub(super) async fn prepared(
    client: &Client,
    statement: &Statement,
    encodings: Encodings,
) -> Result<PreparedRows, SectionError> {
    let mut messages = pin!(client.copy_out(statement).await?);
    let mut prepared = PreparedRows::of(encodings);
    let mut room = Room::default();
    while let Some(message) = messages.try_next().await? {
        room.take(message.len() + ROW)?;
        prepared.read(&message)?;
    }
    Ok(prepared)
}
