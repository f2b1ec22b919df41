//! Numbers for the groups of the graph, and where each group holds or waits.

use rustc_hash::FxHashMap;

use super::queue::{PerMode, stopped_by};
use super::{Party, Queue};
use crate::lock::{Lock, LockMode, LockModes, LockTag};
use locktop_base::Timestamp;

/// Lookup tables of the graph. Groups are numbers here, counted from 0.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    numbers: FxHashMap<Party, usize>,
    groups: Vec<Group>,
    queues: Vec<Members>,
    /// Queues with a wait that no other group blocks: its lock is about to be granted.
    pub(super) clear: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Group {
    party: Party,
    /// `(queue, modes)` of each lock that it holds, queues ascending.
    holds: Vec<(usize, LockModes)>,
    /// `(queue, position)` of each of its waiting processes, ascending.
    waits: Vec<(usize, usize)>,
    since: Option<Timestamp>,
}

/// The members of one queue, in the order of [`Queue::holders`] and [`Queue::waiters`].
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    pub(super) holders: Vec<usize>,
    pub(super) waiters: Vec<usize>,
    /// Number of holders that block requests for each mode.
    pub(super) stopping: PerMode<u32>,
    /// The requested modes.
    pub(super) requests: LockModes,
}

impl Index {
    /// The number of `party`, a new one if it has none.
    pub(super) fn intern(&mut self, party: Party) -> usize {
        *self.numbers.entry(party).or_insert_with(|| {
            self.groups.push(Group { party, holds: Vec::new(), waits: Vec::new(), since: None });
            self.groups.len() - 1
        })
    }

    pub(super) fn number(&self, party: Party) -> Option<usize> {
        self.numbers.get(&party).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn party(&self, group: usize) -> Party {
        self.groups.get(group).map_or(Party::Backend(0), |group| group.party)
    }

    /// Adds a held mode; queues must come in ascending order. True if the group did not hold this lock before.
    pub(super) fn hold(&mut self, group: usize, queue: usize, modes: LockModes) -> bool {
        let Some(group) = self.groups.get_mut(group) else { return false };
        match group.holds.last_mut() {
            Some((last, held)) if *last == queue => {
                *held = held.union(modes);
                false
            }
            _ => {
                group.holds.push((queue, modes));
                true
            }
        }
    }

    /// The modes in which the group holds the lock of `queue`.
    pub(super) fn held(&self, group: usize, queue: usize) -> LockModes {
        let holds = self.holds(group);
        let at = holds.binary_search_by_key(&queue, |(queue, _)| *queue).ok();
        at.and_then(|at| holds.get(at)).map(|(_, modes)| *modes).unwrap_or_default()
    }

    /// `(queue, modes)` of every awaited lock that the group holds.
    pub(super) fn holds(&self, group: usize) -> &[(usize, LockModes)] {
        self.groups.get(group).map_or(&[], |group| &group.holds)
    }

    /// `(queue, position)` of every wait of the group.
    pub(super) fn waits(&self, group: usize) -> &[(usize, usize)] {
        self.groups.get(group).map_or(&[], |group| &group.waits)
    }

    /// Sort key, longest wait first: waits without a start are the newest, and the smaller party wins a tie.
    pub(super) fn age(&self, group: usize) -> (bool, Option<Timestamp>, Party) {
        let since = self.since(group);
        (since.is_none(), since, self.party(group))
    }

    /// When the group's longest wait began.
    pub(super) fn since(&self, group: usize) -> Option<Timestamp> {
        self.groups.get(group).and_then(|group| group.since)
    }

    pub(super) fn members(&self, queue: usize) -> Option<&Members> {
        self.queues.get(queue)
    }

    /// Adds a queue whose holders and order are final.
    pub(super) fn add_queue(&mut self, queue: &Queue, holders: Vec<usize>, waiters: Vec<usize>) {
        let number = self.queues.len();
        let mut members = Members { holders, waiters, ..Members::default() };
        for holder in &queue.holders {
            members.stopping.count(&mut LockModes::default(), stopped_by(holder.modes));
        }
        for (position, (group, waiter)) in members.waiters.iter().zip(&queue.waiters).enumerate() {
            members.requests = members.requests.union(LockModes::of(waiter.mode));
            if let Some(group) = self.groups.get_mut(*group) {
                group.waits.push((number, position));
                group.since = match (group.since, waiter.wait_start) {
                    (Some(old), Some(new)) => Some(old.min(new)),
                    (old, new) => old.or(new),
                };
            }
        }
        self.queues.push(members);
    }
}

/// The rows of one awaited lock, as indices of the scan.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) tag: LockTag,
    pub(super) granted: Vec<usize>,
    pub(super) waiting: Vec<usize>,
}

/// A filter for awaited locks, with few false positives and no false negatives: comparing the whole tags of 20,000 rows
/// takes longer than all the rest of the graph.
struct Sieve {
    bits: Vec<u64>,
}

impl Sieve {
    fn new(awaited: usize) -> Self {
        Self { bits: vec![0; (awaited / 4 + 16).next_power_of_two()] }
    }

    fn place(&self, tag: &LockTag) -> (usize, u64) {
        let mut mix = tag.locktype() as u64;
        for part in [tag.objid(), tag.relation(), tag.transactionid(), tag.classid()] {
            mix = (mix ^ u64::from(part.unwrap_or_default()))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
        }
        let word = usize::try_from(mix >> 6 & 0xffff_ffff).unwrap_or_default() & (self.bits.len() - 1);
        (word, 1 << (mix & 63))
    }

    fn add(&mut self, tag: &LockTag) {
        let (word, bit) = self.place(tag);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
    }

    fn may_hold(&self, tag: &LockTag) -> bool {
        let (word, bit) = self.place(tag);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// Every awaited lock with its rows, sorted by tag: the order of `pg_locks` would move lines on the screen.
///
/// A second row of a process in the same queue is left out: a process waits for one lock at a time.
pub(super) fn awaited(locks: &[Lock]) -> Vec<Rows> {
    let is_waiting = |(_, lock): &(usize, &Lock)| !lock.granted && lock.mode != LockMode::SIRead;
    let waiting: Vec<(usize, &Lock)> = locks.iter().enumerate().filter(is_waiting).collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Rows> = Vec::new();
    let mut by_tag: FxHashMap<LockTag, usize> = FxHashMap::default();
    let mut sieve = Sieve::new(waiting.len());
    for (index, lock) in waiting {
        let queue = *by_tag.entry(lock.tag).or_insert_with(|| {
            sieve.add(&lock.tag);
            found.push(Rows { tag: lock.tag, granted: Vec::new(), waiting: Vec::new() });
            found.len() - 1
        });
        if let Some(rows) = found.get_mut(queue) {
            rows.waiting.push(index);
        }
    }
    for (index, lock) in locks.iter().enumerate() {
        if lock.granted
            && sieve.may_hold(&lock.tag)
            && let Some(rows) = by_tag.get(&lock.tag).and_then(|queue| found.get_mut(*queue))
        {
            rows.granted.push(index);
        }
    }
    found.sort_unstable_by_key(|rows| rows.tag);
    found
}
