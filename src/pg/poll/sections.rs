use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use rustc_hash::FxHashSet;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Statement};

use super::known::ChangesToSend;
use super::names::ReferencedNames;
use crate::model::Timestamp;
use crate::model::backend::Backend;
use crate::model::lock::{Lock, LockMode, LockTag, LockType, VirtualTransaction};
use crate::model::snapshot::{Server, Snapshot, WalReplay};
use crate::model::wait_graph::Answer;
use crate::model::words::class_has_names;
use crate::pg::SectionError;
use crate::pg::decode::DecodeError;
use crate::pg::decode::Encodings;
use crate::pg::decode::backends::{BackendsDecoder, PreparedRows};
use crate::pg::decode::locks::{KnownLocks, LocksDecoder, ReadingSession};
use crate::pg::decode::value::{boolean, int4, int4_array, int8, raw, timestamp};
use crate::pg::jobs::sources;

/// Memory limit for the rows of a section: enough for more than 400,000 locks.
const MOST: usize = 32 << 20;

/// Bytes per row: of a lock, and of another section in addition to its texts.
const LOCK: usize = size_of::<crate::model::lock::Lock>();
const ROW: usize = 400;

/// Reads the rows of a COPY, each of which takes this many bytes.
async fn copied(
    client: &Client,
    statement: &Statement,
    size: impl Fn(&[u8]) -> usize,
    mut read: impl FnMut(&[u8]) -> Result<(), DecodeError>,
) -> Result<(), SectionError> {
    let mut messages = pin!(client.copy_out(statement).await?);
    let mut room = MOST;
    while let Some(message) = messages.try_next().await? {
        room = room.checked_sub(size(&message)).ok_or(SectionError::TooMuch(MOST >> 20))?;
        read(&message)?;
    }
    Ok(())
}

#[derive(Debug, Clone)]
pub(super) struct PollTick {
    pub(super) at: Option<Timestamp>,
    pub(super) in_recovery: bool,
    pub(super) replayed_at: Option<Timestamp>,
    pub(super) replay: WalReplay,
    /// The number of deadlocks, and the databases it covers.
    pub(super) deadlocks: Option<(i64, Arc<[u32]>)>,
    pub(super) pid: Option<i32>,
}

pub(super) async fn tick(
    client: &Client,
    statement: &Statement,
    databases: &[u32],
) -> Result<PollTick, SectionError> {
    let row = client.query_one(statement, &[&databases]).await?;
    Ok(PollTick {
        at: timestamp(raw(&row, 0)),
        in_recovery: boolean(raw(&row, 1)).unwrap_or_default(),
        replayed_at: timestamp(raw(&row, 2)),
        replay: match (boolean(raw(&row, 3)), boolean(raw(&row, 4))) {
            (Some(true), Some(true)) => WalReplay::All,
            (Some(true), _) => WalReplay::Some,
            _ => WalReplay::Nothing,
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
pub(super) async fn send_changes(
    client: &Client,
    statement: &Statement,
    changes: &ChangesToSend,
) -> Result<(), SectionError> {
    let ChangesToSend { poll, since, digests, .. } = changes;
    client.query_one(statement, &[poll, since, digests]).await?;
    Ok(())
}

pub(super) async fn locks(
    client: &Client,
    statement: &Statement,
    reader: ReadingSession,
    before: &KnownLocks,
    poll: &str,
) -> Result<KnownLocks, SectionError> {
    let mut locks = LocksDecoder::new(reader, before, poll);
    // None of the bytes of a message are kept.
    copied(client, statement, |_| LOCK, |message| locks.read(message)).await?;
    Ok(locks.finish()?)
}

pub(super) async fn backends(
    client: &Client,
    statement: &Statement,
    mut backends: BackendsDecoder<'_>,
) -> Result<(Vec<Backend>, String), SectionError> {
    copied(client, statement, |message| message.len() + ROW, |message| backends.read(message)).await?;
    Ok(backends.finish()?)
}

pub(super) async fn prepared(
    client: &Client,
    statement: &Statement,
    encodings: Encodings,
) -> Result<PreparedRows, SectionError> {
    let mut prepared = PreparedRows::of(encodings);
    copied(client, statement, |message| message.len() + ROW, |message| prepared.read(message)).await?;
    Ok(prepared)
}

// Waits for a safe snapshot (`SERIALIZABLE READ ONLY DEFERRABLE`, as in `pg_dump --serializable-deferrable`).
// `pg_locks` does not show them, `pg_safe_snapshot_blocking_pids` does: each becomes a lock that the named
// transactions hold and the waiter requests.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SafeSnapshotWait {
    pub(super) waiter: i32,
    /// Process IDs of the transactions that must end; 0 for a prepared one (`PostPrepare_PredicateLocks` in `predicate.c`).
    pub(super) blockers: Vec<i32>,
}

/// At most `most` processes that waited for one in `before`.
pub(super) fn waiters(before: &Snapshot, most: usize) -> Vec<i32> {
    let waiting = before.backends.last_rows().iter().filter(|row| is_waiting(row));
    waiting.map(|row| row.pid).take(most).collect()
}

fn is_waiting(backend: &Backend) -> bool {
    backend.wait_event.as_deref() == Some("SafeSnapshot")
}

/// Adds locks that represent the waits. A wait whose blockers are not all known is left out.
pub(super) fn with_waits(
    locks: Arc<Vec<Lock>>,
    waits: &[SafeSnapshotWait],
    backends: &[Backend],
) -> Arc<Vec<Lock>> {
    let more: Vec<Lock> =
        waits.iter().filter_map(|wait| as_locks(&locks, wait, backends)).flatten().collect();
    if more.is_empty() {
        return locks;
    }
    Arc::new(locks.iter().chain(&more).copied().collect())
}

fn as_locks(locks: &[Lock], wait: &SafeSnapshotWait, backends: &[Backend]) -> Option<Vec<Lock>> {
    let waiter = backends.iter().find(|row| row.pid == wait.waiter && is_waiting(row))?;
    let tag = LockTag::new(LockType::SafeSnapshot).with_objid(wait.waiter.cast_unsigned());
    let lock = |pid: Option<i32>, virtualtransaction, granted| Lock {
        tag,
        // The modes of a lock on a transaction ID.
        mode: if granted { LockMode::Exclusive } else { LockMode::Share },
        granted,
        pid,
        virtualtransaction,
        // A transaction takes its snapshot at the start of its first statement.
        wait_start: waiter.query_start.filter(|_| !granted),
    };
    let own = |pid: i32| {
        let of = locks.iter().find(|lock| lock.pid == Some(pid));
        of.map_or(VirtualTransaction { proc_number: 0, local_xid: 0 }, |lock| lock.virtualtransaction)
    };
    let mut rows = vec![lock(Some(waiter.pid), own(waiter.pid), false)];
    for blocker in &wait.blockers {
        match *blocker {
            0 => rows.push(lock(None, only_prepared(locks)?, true)),
            // A process that is no longer listed has ended.
            pid if backends.iter().any(|row| row.pid == pid) => rows.push(lock(Some(pid), own(pid), true)),
            _ => {}
        }
    }
    (rows.len() > 1).then_some(rows)
}

/// The serializable prepared transaction, if there is exactly one.
fn only_prepared(locks: &[Lock]) -> Option<VirtualTransaction> {
    let read = locks.iter().filter(|lock| lock.pid.is_none() && lock.mode == LockMode::SIRead);
    let all: FxHashSet<VirtualTransaction> = read.map(|lock| lock.virtualtransaction).collect();
    let mut all = all.into_iter();
    all.next().filter(|_| all.next().is_none())
}

/// The answers to the statements of one poll.
pub(super) struct Scan {
    pub(super) blocking: Result<Blocking, SectionError>,
    /// Whether the known data was sent. If that failed, the next two answers are not from this poll, and report so.
    pub(super) sent: Result<(), SectionError>,
    pub(super) locks: Result<KnownLocks, SectionError>,
    pub(super) backends: Result<(Vec<Backend>, String), SectionError>,
    pub(super) prepared: Result<PreparedRows, SectionError>,
    pub(super) sources: sources::Answers,
    pub(super) tick: Result<PollTick, SectionError>,
}

impl Scan {
    /// Whether another session than `own` answered, or one without the prepared statements: then the session is shared.
    pub(super) fn is_pooled(&self, own: i32) -> bool {
        self.errors().any(|error| error.code() == Some(&SqlState::INVALID_SQL_STATEMENT_NAME))
            || self.tick.as_ref().is_ok_and(|tick| tick.pid.is_some_and(|pid| pid != own))
    }

    /// The error of the connection, if more than a statement failed; a last message of the server comes first.
    pub(super) fn fatal(&self) -> Option<&SectionError> {
        let fatal = self.sources.fatal().into_iter().chain(self.errors());
        fatal.filter(|error| error.is_fatal()).min_by_key(|error| !error.is_last_word())
    }

    /// The errors of the prepared statements.
    fn errors(&self) -> impl Iterator<Item = &SectionError> {
        [
            self.blocking.as_ref().err(),
            self.sent.as_ref().err(),
            self.locks.as_ref().err(),
            self.backends.as_ref().err(),
            self.prepared.as_ref().err(),
            self.tick.as_ref().err(),
        ]
        .into_iter()
        .flatten()
    }

    pub(super) fn used(&self, before: Option<&Snapshot>, server: &Server) -> ReferencedNames {
        let mut used = ReferencedNames::default();
        if let Ok(locks) = &self.locks {
            let relations = used.relations.get_or_insert_default();
            // Counted locks are read rarely.
            let counted = before.into_iter().flat_map(|before| &before.sources.contended);
            let counted = counted.flat_map(|table| table.section.last_rows().iter().map(|row| row.tag));
            let tags = locks.rows.iter().map(|lock| lock.tag).chain(counted).chain(self.sources.counted());
            for tag in tags {
                let Some(database) = tag.database() else { continue };
                if database != 0 && database != server.datid {
                    used.databases.insert(database);
                } else if let Some(relation) = tag.relation() {
                    relations.insert(relation);
                } else if tag.locktype() == LockType::Object
                    && let Some((class, id)) = tag.classid().zip(tag.objid())
                    && id != 0
                    && class_has_names(class)
                {
                    used.objects.insert((database, class, id));
                }
            }
        }
        if let Ok((backends, _)) = &self.backends {
            used.databases.extend(backends.iter().filter_map(|backend| backend.datid));
            used.roles.extend(backends.iter().filter_map(|backend| backend.usesysid));
        }
        if let Ok(prepared) = &self.prepared {
            used.databases.extend(prepared.databases());
            used.roles.extend(prepared.owners());
        }
        used
    }
}
