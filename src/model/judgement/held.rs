//! Since when each advisory lock is held: a lower bound of that time, and since when it has been seen in every poll.
//!
//! A lock that is in two scans may have been released and taken again in between. It was not if the holder was in one
//! transaction all the time, or started and ended nothing. (A session that releases a lock and takes it again within one
//! transaction goes unnoticed: no view shows that.)

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::Timestamp;
use crate::model::backend::{Backend, State};
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::snapshot::Snapshot;
use crate::model::task::{JobState, TaskBoard};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeldSince {
    /// Held without interruption from then on: the age is a lower bound.
    pub proved: Timestamp,
    /// Seen in every poll from then on. In between it may have been released and taken again.
    pub seen: Timestamp,
}

/// Holders and their advisory locks, sorted, with each time stored once: there may be a hundred thousand locks, but few
/// times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldLocks {
    pub(crate) keys: Vec<(HeldKey, u32)>,
    pub(crate) times: Vec<HeldSince>,
}

/// The process, and the identity of the advisory lock: database, both halves, and the class of the key.
pub(crate) type HeldKey = (i32, u32, u32, u32, u16);

/// An advisory lock has all these fields.
fn key((pid, tag): &(i32, LockTag)) -> HeldKey {
    let number = Option::unwrap_or_default;
    let (class, object) = (number(tag.classid()), number(tag.objid()));
    (*pid, number(tag.database()), class, object, tag.objsubid().unwrap_or_default())
}

impl HeldLocks {
    pub fn get(&self, lock: &(i32, LockTag)) -> Option<HeldSince> {
        let at = self.keys.binary_search_by_key(&key(lock), |(key, _)| *key).ok()?;
        self.times.get(self.keys.get(at)?.1 as usize).copied()
    }

    pub fn values(&self) -> impl Iterator<Item = HeldSince> {
        self.keys.iter().filter_map(|(_, at)| self.times.get(*at as usize).copied())
    }
}

impl FromIterator<((i32, LockTag), HeldSince)> for HeldLocks {
    fn from_iter<I: IntoIterator<Item = ((i32, LockTag), HeldSince)>>(locks: I) -> Self {
        let mut places: FxHashMap<HeldSince, u32> = FxHashMap::default();
        let mut times = Vec::new();
        let mut place = |since: HeldSince| {
            *places.entry(since).or_insert_with(|| {
                times.push(since);
                u32::try_from(times.len() - 1).unwrap_or_default()
            })
        };
        let mut keys: Vec<_> = locks.into_iter().map(|(lock, since)| (key(&lock), place(since))).collect();
        keys.sort_unstable();
        keys.dedup_by_key(|(key, _)| *key);
        keys.shrink_to_fit();
        Self { keys, times }
    }
}

/// Locks that are the keys of running work, by holder, and the start of that work: for these the time is exact.
pub type RunLocks = FxHashMap<(i32, LockTag), Timestamp>;

pub fn runs(tasks: &TaskBoard, snapshot: &Snapshot) -> RunLocks {
    let runs = tasks.rows.iter().filter(|row| matches!(row.state, JobState::Running | JobState::Slow));
    let key = |row: &crate::model::task::TaskRow| {
        let began = row.execution(snapshot)?.started_at?;
        Some(((row.holder?, row.tag?), began))
    };
    runs.filter_map(key).filter(|((_, tag), _)| tag.locktype() == LockType::Advisory).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionActivity {
    pub(crate) backend_start: Timestamp,
    pub(crate) xact_start: Option<Timestamp>,
    pub(crate) state_change: Option<Timestamp>,
}

impl SessionActivity {
    /// None for a backend that is hidden from the role, and for one whose activity began during the scan: the locks may have
    /// been read before.
    fn of(backend: &Backend, scan: Timestamp) -> Option<Self> {
        let Backend { backend_start, xact_start, state_change, .. } = backend;
        let since = xact_start.or(*state_change)?;
        let doing =
            Self { backend_start: (*backend_start)?, xact_start: *xact_start, state_change: *state_change };
        (since <= scan).then_some(doing)
    }

    /// Whether the activity continued until `later`, without the end of a transaction in between.
    fn continues_in(self, later: &Backend) -> bool {
        Some(self.backend_start) == later.backend_start
            && self.xact_start == later.xact_start
            && (self.xact_start.is_some() || self.state_change == later.state_change)
    }
}

#[derive(Debug, Clone, Default)]
pub struct HeldWatch {
    pub(crate) since: Arc<HeldLocks>,
    /// The rows from which the table was made; without them it is rebuilt, with the same result.
    pub(crate) locks: Arc<Vec<Lock>>,
    pub(crate) holders: FxHashMap<i32, Option<SessionActivity>>,
    pub(crate) starts: FxHashMap<i32, Timestamp>,
}

impl HeldWatch {
    /// The table for a snapshot. It is unchanged if the snapshot has no current locks.
    pub fn observe(&mut self, snapshot: &Snapshot) -> Arc<HeldLocks> {
        if snapshot.locks.is_known() {
            self.update(snapshot);
        }
        Arc::clone(&self.since)
    }

    /// A cheap comparison that does not visit each lock. A poll in which no advisory lock was taken or released, and no
    /// transaction of a holder ended, shares the table of the previous poll.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.since, &other.since) && self.holders == other.holders && self.starts == other.starts
    }

    /// The time without a connection is unknown.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn update(&mut self, snapshot: &Snapshot) {
        let locks = snapshot.locks.last_rows();
        let fresh = snapshot.backends.is_known();
        let backends = if fresh { &snapshot.backends.last_rows()[..] } else { &[] };
        let scan = snapshot.taken_at - seconds(snapshot.poll_seconds);
        // There are few holders, even with many locks.
        let mut same = 0;
        let mut now: FxHashMap<i32, (bool, Option<SessionActivity>)> = FxHashMap::default();
        for backend in backends {
            if let Some(before) = self.holders.get(&backend.pid) {
                let goes_on = before.is_some_and(|before| before.continues_in(backend));
                same += usize::from(goes_on);
                now.insert(backend.pid, (goes_on, SessionActivity::of(backend, scan)));
            }
        }
        // Most polls change nothing, and the server lists what stays in the same order.
        let unchanged = Arc::ptr_eq(&self.locks, locks) || held(&self.locks).eq(held(locks));
        if unchanged && same == self.holders.len() {
            self.holders = now.into_iter().map(|(pid, (_, doing))| (pid, doing)).collect();
            self.locks = Arc::clone(locks);
            return;
        }
        let goes_on = |pid: i32| now.get(&pid).is_some_and(|(goes_on, _)| *goes_on);
        let starts: FxHashMap<i32, Timestamp> =
            backends.iter().filter_map(|backend| Some((backend.pid, backend.backend_start?))).collect();
        // If a start is hidden from the role, the session is assumed to be the same.
        let is_same =
            |pid: i32| self.starts.get(&pid).zip(starts.get(&pid)).is_none_or(|(before, now)| before == now);
        let mut holders: FxHashMap<i32, Option<SessionActivity>> = FxHashMap::default();
        let idle: FxHashMap<i32, Timestamp> =
            backends.iter().filter_map(|backend| Some((backend.pid, idle_since(backend, scan)?))).collect();
        let since = held(locks).map(|key| {
            holders.insert(key.0, None);
            let before = self.since.get(&key);
            let proved = before.map(|before| before.proved).filter(|_| goes_on(key.0));
            let proved = proved.or_else(|| idle.get(&key.0).copied()).unwrap_or(snapshot.taken_at);
            let seen = before.filter(|_| is_same(key.0)).map_or(snapshot.taken_at, |before| before.seen);
            (key, HeldSince { proved, seen })
        });
        let table: HeldLocks = since.collect();
        for backend in backends {
            if let Some(doing) = holders.get_mut(&backend.pid) {
                *doing = SessionActivity::of(backend, scan);
            }
        }
        *self = Self { since: Arc::new(table), locks: Arc::clone(locks), holders, starts };
    }
}

/// An idle session takes no lock: it has held its locks since before it became idle.
fn idle_since(backend: &Backend, scan: Timestamp) -> Option<Timestamp> {
    let state = backend.state.filter(|state| *state == State::Idle || state.is_idle_in_transaction());
    state.and(backend.state_change).filter(|since| *since <= scan)
}

fn seconds(seconds: f64) -> chrono::TimeDelta {
    std::time::Duration::try_from_secs_f64(seconds)
        .ok()
        .and_then(|duration| chrono::TimeDelta::from_std(duration).ok())
        .unwrap_or_default()
}

fn held(locks: &[Lock]) -> impl Iterator<Item = (i32, LockTag)> {
    locks
        .iter()
        .filter(|lock| lock.granted && lock.tag.locktype() == LockType::Advisory)
        .filter_map(|lock| Some((lock.pid?, lock.tag)))
}
