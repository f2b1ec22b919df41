//! The rows of `pg_locks` that matter: those of locks with waiters.

use rustc_hash::FxHashMap;

use crate::lock::{Lock, LockMode, LockTag};

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
    let waiting: Vec<usize> = locks
        .iter()
        .enumerate()
        .filter(|(_, lock)| !lock.granted && lock.mode != LockMode::SIRead)
        .map(|(index, _)| index)
        .collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Rows> = Vec::new();
    let mut by_tag: FxHashMap<LockTag, usize> = FxHashMap::default();
    let mut sieve = Sieve::new(waiting.len());
    for index in waiting {
        let Some(lock) = locks.get(index) else { continue };
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
