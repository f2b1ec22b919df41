//! Sessions that wait behind a request that waits itself: an `ALTER TABLE` behind a long query, and every reader of the
//! table behind it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::lock::{LockMode, LockModes};
use super::wait_graph::{Party, Queue};

/// How many wait only because of each place in the queue, in order of the places. Linear: only the first request for each
/// mode is remembered.
pub fn held_up(queue: &Queue) -> Vec<(usize, u32)> {
    let held = queue.holders.iter().fold(LockModes::default(), |modes, holder| modes.union(holder.modes));
    let holders: FxHashSet<Party> = queue.holders.iter().map(|holder| holder.party).collect();
    let mut first: Vec<(LockMode, usize)> = Vec::new();
    let mut behind: FxHashMap<usize, u32> = FxHashMap::default();
    for (place, waiter) in queue.waiters.iter().enumerate() {
        // A session that already holds the lock queues by other rules.
        if !waiter.mode.conflicts_with(held) && !holders.contains(&waiter.party) {
            let ahead = first.iter().filter(|(mode, _)| waiter.mode.conflicts_with(LockModes::of(*mode)));
            if let Some(place) = ahead.map(|(_, place)| *place).min() {
                *behind.entry(place).or_default() += 1;
            }
        }
        if !first.iter().any(|(mode, _)| *mode == waiter.mode) {
            first.push((waiter.mode, place));
        }
    }
    let mut places: Vec<_> = behind.into_iter().collect();
    places.sort_unstable();
    places
}
