use rustc_hash::FxHashMap;

use super::Timestamp;
use super::lock::{LockTag, LockType};
use super::snapshot::Snapshot;
use super::task::{Board, TaskState};

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
    pub(crate) keys: Vec<(Key, u32)>,
    pub(crate) times: Vec<HeldSince>,
}

/// The process, and the identity of the advisory lock: database, both halves, and the class of the key.
pub(crate) type Key = (i32, u32, u32, u32, u16);

/// An advisory lock has all these fields.
fn key((pid, tag): &(i32, LockTag)) -> Key {
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

pub fn runs(tasks: &Board, snapshot: &Snapshot) -> RunLocks {
    let runs = tasks.rows.iter().filter(|row| matches!(row.state, TaskState::Running | TaskState::Slow));
    let key = |row: &super::task::TaskRow| {
        let began = row.execution(snapshot)?.started_at?;
        Some(((row.holder?, row.tag?), began))
    };
    runs.filter_map(key).filter(|((_, tag), _)| tag.locktype() == LockType::Advisory).collect()
}
