//! Who would be granted a lock if a group went.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Queue;
use super::index::{Index, Members};
use super::per_mode::{PerMode, stopped_by};
use crate::model::lock::{LockMode, LockModes};

/// The groups of which a wait would end if `gone` went, in the order in which the server would wake them.
pub(super) fn freed(queues: &[Queue], index: &Index, gone: usize) -> Vec<usize> {
    // The server looks at a queue only when somebody in it asks for what a released mode conflicts with
    // (`UnGrantLock` in `src/backend/storage/lmgr/lock.c`), or when a waiter leaves it (`RemoveFromWaitQueue`).
    let is_awaited = |(queue, modes): &&(usize, LockModes)| {
        index.members(*queue).is_some_and(|members| members.requests.intersects(stopped_by(*modes)))
    };
    let mut touched: Vec<usize> =
        index.holds(gone).iter().filter(is_awaited).map(|(queue, _)| *queue).collect();
    touched.extend(index.waits(gone).iter().map(|(queue, _)| *queue));
    touched.sort_unstable();
    touched.dedup();
    let mut woken = Vec::new();
    for number in touched {
        if let (Some(queue), Some(members)) = (queues.get(number), index.members(number)) {
            Wakeup::new(index, number, members, gone).run(queue, &mut woken);
        }
    }
    let mut seen = FxHashSet::default();
    woken.retain(|group| seen.insert(*group));
    woken
}

/// One walk along a queue, as `ProcLockWakeup` in `src/backend/storage/lmgr/proc.c` does it: a waiter is granted
/// its lock when its request conflicts neither with that of any waiter passed over before (of its own group too)
/// nor with what other groups hold, those just granted included.
struct Wakeup<'a> {
    index: &'a Index,
    number: usize,
    members: &'a Members,
    gone: usize,
    gone_stops: LockModes,
    /// The requests that those just granted stop, by group and counted.
    granted: FxHashMap<usize, LockModes>,
    granted_stop: PerMode<u32>,
}

impl<'a> Wakeup<'a> {
    fn new(index: &'a Index, number: usize, members: &'a Members, gone: usize) -> Self {
        Self {
            index,
            number,
            members,
            gone,
            gone_stops: stopped_by(index.held(gone, number)),
            granted: FxHashMap::default(),
            granted_stop: PerMode::default(),
        }
    }

    fn run(mut self, queue: &Queue, woken: &mut Vec<usize>) {
        let mut ahead = LockModes::default();
        for (group, waiter) in self.members.waiters.iter().zip(&queue.waiters) {
            if *group == self.gone {
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

    /// Whether no other group holds anything that conflicts.
    fn is_clear(&self, group: usize, mode: LockMode) -> bool {
        let mode_itself = LockModes::of(mode);
        let mut stopping = self.members.stopping.get(mode);
        if stopping > 0 {
            stopping -= u32::from(self.gone_stops.intersects(mode_itself));
        }
        if stopping > 0 {
            stopping -= u32::from(mode.conflicts_with(self.index.held(group, self.number)));
        }
        let own = self.granted.get(&group).is_some_and(|stops| stops.intersects(mode_itself));
        stopping == 0 && self.granted_stop.get(mode) == u32::from(own)
    }

    fn grant(&mut self, group: usize, mode: LockMode) {
        let stops = self.granted.entry(group).or_default();
        for stopped in mode.conflicts().iter() {
            if !stops.intersects(LockModes::of(stopped)) {
                *self.granted_stop.slot(stopped) += 1;
            }
        }
        *stops = stops.union(mode.conflicts());
    }
}
