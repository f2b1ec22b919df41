//! Leases: locks that expire. Only the server's clock decides whether one has ended.

#[cfg(test)]
mod tests;

pub use crate::model::table_rows::Lease;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::lock::{LockMode, LockType};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::hashtextextended;
use crate::model::redis_lease::{RedisLease, RedisLeases, Standing};
use crate::model::snapshot::Snapshot;
use crate::model::source_tables::{Source, TableRows};
use crate::model::table_rows::NameHash;
use crate::model::{Text, Timestamp};

/// Where a lease is kept, and its id there.
pub type LeaseId = NameHash;

/// The position of a row in its table: page and line.
pub type RowPosition = (u32, u16);

words! {
    /// The state of a lease, the most urgent first.
    #[derive(Default)]
    pub enum LeaseState {
        /// Its term has ended, and its owner has not released it.
        Expired,
        Held,
        /// Of another system: its row has neither an owner nor an end.
        #[default]
        Unknown,
        /// Of another system: its term has ended, and the next request gets it.
        Over,
        Released,
        /// Its row names no owner, as after a release by the published functions.
        Free,
    }
}

impl LeaseState {
    pub fn is_held(self) -> Option<bool> {
        (self != Self::Unknown).then_some(self == Self::Held)
    }
}

impl Lease {
    /// The state at `now`. A release empties the owner (published tables) or the term (locktop's own). A lease without an end
    /// never expires: the published condition `now() > ts + expired_time` is NULL then, and no other owner gets it.
    pub fn state(&self, now: Timestamp) -> LeaseState {
        let is_released = self.released_at.is_some() || self.term.is_some_and(|term| term <= 0.0);
        match self.expires_at {
            _ if self.owner.is_none() => LeaseState::Free,
            Some(end) if end <= now && is_released => LeaseState::Released,
            Some(end) if end <= now => LeaseState::Expired,
            Some(_) | None => LeaseState::Held,
        }
    }
}

/// A lease of locktop's or the published tables, in Redis, or of another system.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaseRow {
    pub id: LeaseId,
    /// Its table, `redis`, or the label of the installation.
    pub source: Text,
    /// Of another system: the index of the installation in the snapshot, and of the lease in it.
    pub place: (usize, usize),
    /// `id` of its row, or the key in Redis.
    pub key: Text,
    /// Its name if it has one, otherwise its key.
    pub name: Text,
    /// The current or last owner.
    pub owner: Option<Text>,
    pub acquired_at: Option<Timestamp>,
    /// When it was acquired or renewed.
    pub renewed_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    /// Its duration from a renewal on, in seconds.
    pub term: Option<f64>,
    /// The fencing token, which increases with every change of owner. None in Redis, and if the table has none.
    pub token: Option<i64>,
    /// The token of another system.
    pub token_text: Option<Text>,
    /// Of another system, for the user: `rescues, schedules, cleans`.
    pub note: Option<Text>,
    pub state: LeaseState,
    /// Seconds until it ends, at the time of reading; negative if it has ended.
    pub left: Option<f64>,
    pub owner_alive: Option<bool>,
    /// The session that its row names, or that holds its lock.
    pub owner_pid: Option<i32>,
    pub waiting: u32,
    /// The key of its queue, or its lock in another system; None in a published table and in Redis.
    pub queue: Option<LockKey>,
    /// On how many of several servers its owner has it, and how many there are. None for a lease on one server.
    pub quorum: Option<(u16, u16)>,
    /// The number of its set of servers, from 1. None if there is one set, or it is in a table.
    pub set: Option<u16>,
    /// Several owners have it on different servers.
    pub is_split: bool,
    /// For a lock in Redis, which records neither its start nor its term.
    pub observed: ObservedHold,
}

/// Lower bounds for a lock whose store does not record them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ObservedHold {
    /// How long its owner has been observed, in seconds.
    pub held: Option<f64>,
    /// The longest remaining time observed, in seconds.
    pub term: Option<f64>,
    /// How many times its owner has locked it, if it is reentrant.
    pub holds: Option<i64>,
}

impl LeaseRow {
    /// The table or the server, with the number of the set if there are several: `distlock`, `redis`, `redis 2`.
    pub fn shown_source(&self) -> Cow<'_, str> {
        match self.set {
            Some(set) => Cow::Owned(format!("{} {set}", self.source)),
            None => Cow::Borrowed(&self.source),
        }
    }

    /// The most urgent first: the longest expired, then the one with the least time left. Ties are broken by values that do not
    /// change between two polls.
    pub fn urgency(&self, other: &Self) -> Ordering {
        let left = |row: &Self| (row.left.is_none(), row.left.unwrap_or_default());
        let ((none, mine), (other_none, others)) = (left(self), left(other));
        let by_left = none.cmp(&other_none).then(mine.total_cmp(&others));
        let by_name = self.name.len().cmp(&other.name.len()).then_with(|| self.name.cmp(&other.name));
        let by_name = by_name.then_with(|| (&self.source, self.set).cmp(&(&other.source, other.set)));
        match self.state.cmp(&other.state) {
            Ordering::Equal if self.state <= LeaseState::Held => by_left.then(by_name),
            Ordering::Equal => by_name,
            by_state => by_state,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct LeaseBoard {
    /// In the order of the tables, then those in Redis.
    pub rows: Vec<LeaseRow>,
}

impl LeaseBoard {
    pub fn of(snapshot: &Snapshot) -> Self {
        let waiting = waiting(snapshot);
        let tables = snapshot.sources.leases.iter();
        let rows = tables.flat_map(|table| {
            table.section.last_rows().iter().map(|lease| row(snapshot, table, lease, &waiting))
        });
        let rows = rows.chain(rows_in_redis(&snapshot.sources.redis, snapshot.taken_at)).collect();
        Self { rows }
    }

    pub fn count(&self, state: LeaseState) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }
}

fn row(snapshot: &Snapshot, table: &TableRows<Lease>, lease: &Lease, waiting: &LeaseWaiters) -> LeaseRow {
    // Rows that could not be read again are judged at the time of their reading: they may have been renewed since.
    let now = table.section.taken_at.unwrap_or(snapshot.taken_at);
    // A column of this name in another table need not be unique.
    let name = lease.name.as_ref().filter(|_| table.source.own_keys).unwrap_or(&lease.id);
    LeaseRow {
        id: LeaseId::of(&table.source.name, &lease.id),
        source: Arc::clone(&table.source.name),
        key: Arc::clone(&lease.id),
        name: Arc::clone(name),
        owner: lease.owner.clone(),
        acquired_at: lease.acquired_at,
        renewed_at: lease.renewed_at,
        expires_at: lease.expires_at,
        term: lease.term,
        token: lease.token,
        state: lease.state(now),
        left: lease.expires_at.map(|end| (end - now).as_seconds_f64()),
        owner_alive: alive(snapshot, lease),
        owner_pid: lease.backend_pid,
        waiting: waiting.sessions(&table.source, lease),
        queue: key(&table.source, lease),
        ..LeaseRow::default()
    }
}

/// Whether the session named in the row is connected. The owner's name proves nothing: it is any text, and not unique.
fn alive(snapshot: &Snapshot, lease: &Lease) -> Option<bool> {
    let (pid, start) = (lease.backend_pid?, lease.backend_start?);
    snapshot.has_session(pid, start)
}

/// The number of sessions that wait.
#[derive(Default)]
struct LeaseWaiters {
    /// By table and position of a row: all but the first wait for its tuple lock, and the first holds it.
    rows: FxHashMap<(u32, RowPosition), u32>,
    /// By the key of a lease's queue: the first holds it, and the others wait for it. The owner leaves it only after it has the lease.
    queues: FxHashMap<LockKey, (Option<i32>, u32)>,
}

impl LeaseWaiters {
    fn sessions(&self, source: &Source, lease: &Lease) -> u32 {
        let row = lease.place.and_then(|place| self.rows.get(&(source.table, place)));
        let queue = key(source, lease).and_then(|key| self.queues.get(&key));
        row.copied().unwrap_or_default() + queue.map_or(0, |(_, sessions)| *sessions)
    }
}

fn waiting(snapshot: &Snapshot) -> LeaseWaiters {
    let mut waiting = LeaseWaiters::default();
    if snapshot.sources.leases.is_empty() || !snapshot.locks.is_known() {
        return waiting;
    }
    for table in &snapshot.sources.leases {
        let leases = table.section.last_rows().iter();
        let queues = leases.filter_map(|lease| Some((key(&table.source, lease)?, (lease.backend_pid, 0))));
        waiting.queues.extend(queues);
    }
    let datid = snapshot.server().map(|server| server.datid);
    for lock in snapshot.locks.last_rows().iter().filter(|lock| lock.tag.database() == datid) {
        if lock.tag.locktype() == LockType::Tuple
            && let (Some(table), Some(page), Some(line)) =
                (lock.tag.relation(), lock.tag.page(), lock.tag.tuple())
        {
            *waiting.rows.entry((table, (page, line))).or_default() += 1;
        }
        if lock.mode == LockMode::Exclusive
            && let Some((owner, sessions)) =
                lock.tag.advisory_key().and_then(|key| waiting.queues.get_mut(&key))
            && (lock.pid.is_none() || lock.pid != *owner)
        {
            *sessions += 1;
        }
    }
    waiting
}

pub const REDIS: &str = "redis";

/// A row for each lock. Times are those of `leases.read_at`; a lock that has ended since, by the term read then, is
/// omitted: it is not known whether it was renewed.
fn rows_in_redis(leases: &RedisLeases, now: Timestamp) -> impl Iterator<Item = LeaseRow> {
    let age = leases.read_at.map_or(0.0, |read_at| (now - read_at).as_seconds_f64().max(0.0));
    leases.rows.iter().filter(|lease| lease.holder.is_lock()).filter_map(move |lease| {
        let row = row_in_redis(lease, age, now)?;
        let set = (leases.sets.len() > 1).then(|| small(lease.set + 1));
        Some(LeaseRow { set, ..row })
    })
}

fn small(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// The identity of a lock: its set of servers and the bytes of its key, which need not be text.
pub fn redis_id(lease: &RedisLease) -> LeaseId {
    let (key, set) = (&lease.key, lease.set);
    match std::str::from_utf8(key) {
        Ok(text) => LeaseId::of(&format!("{REDIS} {set}"), text),
        Err(_) => LeaseId::of(&format!("{REDIS} {set}, bytes"), &key.escape_ascii().to_string()),
    }
}

fn row_in_redis(lease: &RedisLease, age: f64, now: Timestamp) -> Option<LeaseRow> {
    let left = lease.expiry.left().map(|left| left.as_secs_f64() - age);
    if left.is_some_and(|left| left <= 0.0) {
        return None;
    }
    let end = |left| chrono::TimeDelta::from_std(std::time::Duration::try_from_secs_f64(left).ok()?).ok();
    let seconds = |millis: i64| Some(chrono::TimeDelta::try_milliseconds(millis)?.as_seconds_f64());
    let votes = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    let state = match lease.standing {
        Standing::Held | Standing::Unknown => LeaseState::Held,
        Standing::Split | Standing::Minority => LeaseState::Free,
    };
    Some(LeaseRow {
        id: redis_id(lease),
        source: REDIS.into(),
        key: lease.name(),
        name: lease.name(),
        owner: Some(lease.holder.shown()),
        expires_at: left.and_then(end).and_then(|left| now.checked_add_signed(left)),
        state,
        left,
        quorum: (lease.servers > 1).then(|| (votes(lease.votes), votes(lease.servers))),
        is_split: lease.standing == Standing::Split,
        observed: ObservedHold {
            held: lease.observed.and_then(seconds).map(|held| held + age),
            term: lease.longest.and_then(seconds),
            holds: lease.holder.holds(),
        },
        ..LeaseRow::default()
    })
}

/// The key of the queue for a lease of locktop's schema ([`locktop_locks::lease`]).
fn key(source: &Source, lease: &Lease) -> Option<LockKey> {
    let schema = source.name.strip_suffix(".distlock").filter(|_| source.own_keys)?;
    let id = match &lease.name {
        Some(name) => Cow::Owned(format!("'{}'", name.replace('\'', "''"))),
        None => Cow::Borrowed(&*lease.id),
    };
    let name = format!("locktop lease \"{}\" {id}", schema.replace('"', "\"\""));
    Some(LockKey::Bigint(hashtextextended(name.as_bytes(), 0)))
}
