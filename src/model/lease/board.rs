use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Lease, LeaseId, LeaseState, RowPosition, in_redis};
use crate::model::lock::LockType;
use crate::model::snapshot::Snapshot;
use crate::model::systems::TableRows;
use crate::model::{Text, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub struct LeaseRow {
    pub id: LeaseId,
    pub source: Text,
    /// `id` of its row, or the key in Redis.
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
    pub state: LeaseState,
    /// Seconds until it ends, at the time of reading; negative if it has ended.
    pub left: Option<f64>,
    pub owner_alive: Option<bool>,
    pub owner_pid: Option<i32>,
    pub waiting: u32,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts([u32; LeaseState::ALL.len()]);

impl Counts {
    pub fn of(&self, state: LeaseState) -> u32 {
        let place = LeaseState::ALL.iter().position(|other| *other == state);
        place.and_then(|at| self.0.get(at)).copied().unwrap_or_default()
    }

    fn add(&mut self, state: LeaseState) {
        let place = LeaseState::ALL.iter().position(|other| *other == state);
        if let Some(count) = place.and_then(|at| self.0.get_mut(at)) {
            *count += 1;
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Board {
    /// In the order of the tables, then those in Redis.
    pub rows: Vec<LeaseRow>,
    pub counts: Counts,
}

impl Board {
    pub fn of(snapshot: &Snapshot) -> Self {
        let waiting = waiting(snapshot);
        let tables = snapshot.systems.leases.iter();
        let rows = tables.flat_map(|table| {
            table.section.last_rows().iter().map(|lease| row(snapshot, table, lease, &waiting))
        });
        Self::with(rows.chain(in_redis::rows(&snapshot.systems.redis, snapshot.taken_at)).collect())
    }

    /// Counts the states; `rows` are already sorted.
    pub fn with(rows: Vec<LeaseRow>) -> Self {
        let mut counts = Counts::default();
        for row in &rows {
            counts.add(row.state);
        }
        Self { rows, counts }
    }
}

fn row(
    snapshot: &Snapshot,
    table: &TableRows<Lease>,
    lease: &Lease,
    waiting: &FxHashMap<(u32, RowPosition), u32>,
) -> LeaseRow {
    // Rows that could not be read again are judged at the time of their reading: they may have been renewed since.
    let now = table.section.taken_at.unwrap_or(snapshot.taken_at);
    LeaseRow {
        id: LeaseId::of(&table.source.name, &lease.id),
        source: Arc::clone(&table.source.name),
        name: Arc::clone(&lease.id),
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
        waiting: lease
            .place
            .and_then(|place| waiting.get(&(table.source.table, place)).copied())
            .unwrap_or_default(),
        quorum: None,
        set: None,
        is_split: false,
        observed: ObservedHold::default(),
    }
}

/// Whether the session named in the row is connected. The owner's name proves nothing: it is any text, and not unique.
fn alive(snapshot: &Snapshot, lease: &Lease) -> Option<bool> {
    let (pid, start) = (lease.backend_pid?, lease.backend_start?);
    snapshot.has_session(pid, start)
}

/// The number of sessions that wait for a row, by table and position: all but the first wait for its tuple lock, and the
/// first holds it.
fn waiting(snapshot: &Snapshot) -> FxHashMap<(u32, RowPosition), u32> {
    let mut waiting = FxHashMap::default();
    if snapshot.systems.leases.is_empty() || !snapshot.locks.is_known() {
        return waiting;
    }
    let datid = snapshot.server().map(|server| server.datid);
    for lock in snapshot.locks.last_rows().iter().filter(|lock| lock.tag.locktype() == LockType::Tuple) {
        if let (Some(table), Some(page), Some(line)) =
            (lock.tag.relation(), lock.tag.page(), lock.tag.tuple())
            && lock.tag.database() == datid
        {
            *waiting.entry((table, (page, line))).or_default() += 1;
        }
    }
    waiting
}
