//! Which groups would be granted a lock if other groups ended.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Queue;
use super::index::{Index, Members};
use super::queue::{PerMode, stopped_by};
use crate::lock::{LockMode, LockModes, LockType};

/// The locks that groups keep when they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    Nothing,
    /// Advisory locks: they may belong to the session.
    Advisory,
    /// All locks: only the waits end.
    All,
}

impl Stays {
    /// Whether a group that ends releases the lock of this queue.
    pub(super) fn releases(self, queue: &Queue) -> bool {
        match self {
            Self::Nothing => true,
            Self::Advisory => queue.tag.locktype() != LockType::Advisory,
            Self::All => false,
        }
    }
}

/// Groups that end, and the locks that they keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedGroups<'a> {
    /// Their numbers in the index, ascending.
    pub(super) groups: &'a [usize],
    pub(super) stays: Stays,
}

impl<'a> EndedGroups<'a> {
    /// Groups that end completely. Their numbers are in ascending order.
    pub(super) fn whole(groups: &'a [usize]) -> Self {
        Self { groups, stays: Stays::Nothing }
    }

    fn contains(self, group: usize) -> bool {
        self.groups.binary_search(&group).is_ok()
    }

    /// The queues that the server checks when they end, ascending.
    fn touches(self, queues: &[Queue], index: &Index) -> Vec<usize> {
        // The server checks a queue only if a waiter in it requests a mode that conflicts with a released one (`UnGrantLock`
        // in `src/backend/storage/lmgr/lock.c`), or if a waiter leaves it (`RemoveFromWaitQueue`).
        let is_awaited = |(queue, modes): &&(usize, LockModes)| {
            index.members(*queue).is_some_and(|members| members.requests.intersects(stopped_by(*modes)))
        };
        let is_released = |(queue, _): &&(usize, LockModes)| {
            queues.get(*queue).is_some_and(|queue| self.stays.releases(queue))
        };
        let mut touched = Vec::new();
        for gone in self.groups {
            let held = index.holds(*gone).iter().filter(is_awaited).filter(is_released);
            touched.extend(held.map(|(queue, _)| *queue));
            touched.extend(index.waits(*gone).iter().map(|(queue, _)| *queue));
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }
}

/// The groups whose wait would end with the ended groups, in the order in which the server would wake them.
///
/// It does not matter whether the groups end together or in which order: a waiter that is passed over blocks only
/// waiters that conflict with it.
pub(super) fn freed(queues: &[Queue], index: &Index, ended: EndedGroups<'_>) -> Vec<usize> {
    let mut woken = Vec::new();
    for number in ended.touches(queues, index) {
        if let (Some(queue), Some(members)) = (queues.get(number), index.members(number)) {
            Wakeup::new(index, (number, queue), members, ended).run(queue, &mut woken);
        }
    }
    let mut seen = FxHashSet::default();
    woken.retain(|group| seen.insert(*group));
    woken
}

/// One pass along a queue, like `ProcLockWakeup` in `src/backend/storage/lmgr/proc.c`: a waiter is granted its lock if
/// its request conflicts neither with that of any waiter passed over before (also of its own group) nor with the locks
/// of other groups, including those just granted.
struct Wakeup<'a> {
    index: &'a Index,
    number: usize,
    members: &'a Members,
    gone: EndedGroups<'a>,
    /// Number of ended groups that blocked requests for each mode.
    ended_stops: PerMode<u32>,
    /// The requests that the groups just granted block, by group and counted.
    granted: FxHashMap<usize, LockModes>,
    granted_stop: PerMode<u32>,
}

impl<'a> Wakeup<'a> {
    fn new(
        index: &'a Index,
        (number, queue): (usize, &Queue),
        members: &'a Members,
        gone: EndedGroups<'a>,
    ) -> Self {
        let mut gone_stops = PerMode::default();
        for group in gone.groups.iter().filter(|_| gone.stays.releases(queue)) {
            gone_stops.count(&mut LockModes::default(), stopped_by(index.held(*group, number)));
        }
        let (granted, granted_stop) = (FxHashMap::default(), PerMode::default());
        Self { index, number, members, gone, ended_stops: gone_stops, granted, granted_stop }
    }

    fn run(mut self, queue: &Queue, woken: &mut Vec<usize>) {
        let mut ahead = LockModes::default();
        for (group, waiter) in self.members.waiters.iter().zip(&queue.waiters) {
            if self.gone.contains(*group) {
                continue;
            }
            if !waiter.mode.conflicts_with(ahead) && self.is_clear(*group, waiter.mode) {
                self.grant(*group, waiter.mode);
                woken.push(*group);
            } else if !ahead.intersects(LockModes::of(waiter.mode)) {
                ahead = ahead.union(LockModes::of(waiter.mode));
                if self.members.requests.iter().all(|mode| mode.conflicts_with(ahead)) {
                    break;
                }
            }
        }
    }

    /// Whether no other group holds a conflicting lock.
    fn is_clear(&self, group: usize, mode: LockMode) -> bool {
        let mode_itself = LockModes::of(mode);
        let mut stopping = self.members.stopping.get(mode).saturating_sub(self.ended_stops.get(mode));
        if stopping > 0 {
            stopping -= u32::from(mode.conflicts_with(self.index.held(group, self.number)));
        }
        let own = self.granted.get(&group).is_some_and(|stops| stops.intersects(mode_itself));
        stopping == 0 && self.granted_stop.get(mode) == u32::from(own)
    }

    fn grant(&mut self, group: usize, mode: LockMode) {
        self.granted_stop.count(self.granted.entry(group).or_default(), mode.conflicts());
    }
}
