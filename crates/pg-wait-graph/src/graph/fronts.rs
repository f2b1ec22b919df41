//! Which groups wait behind which roots, and because of which of the roots' locks.

use rustc_hash::{FxHashMap, FxHashSet};

use super::index::{Index, Rows};
use super::net::Net;
use super::{Answer, Input, Party, Queue, Root};
use crate::backend::Backend;
use crate::lock::{Lock, LockModes};

/// Roots that block the same requests for the same locks, and the groups behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Front {
    /// The roots, ranked as in [`super::WaitGraph::roots`].
    pub roots: Vec<Party>,
    /// Every group behind them, once, with the queue of the roots' lock at which its chain begins; the first of several.
    pub behind: Vec<(Party, usize)>,
}

/// The fronts of all roots, in the order of the first root of each.
pub(super) fn fronts(queues: &[Queue], index: &Index, net: &Net, roots: &[Root]) -> Vec<Front> {
    let mut places: FxHashMap<&[usize], usize> = FxHashMap::default();
    let mut fronts: Vec<Front> = Vec::new();
    let mut seen = vec![usize::MAX; net.backward.len()];
    for root in roots {
        let Some(group) = index.number(root.party) else { continue };
        let number = fronts.len();
        let place = *places.entry(net.backward.of(group)).or_insert(number);
        match fronts.get_mut(place) {
            Some(front) => front.roots.push(root.party),
            None => fronts.push(Front {
                roots: vec![root.party],
                behind: behind(queues, index, net, group, &mut (number, &mut seen)),
            }),
        }
    }
    fronts
}

/// The groups behind a root. `seen` has the last search that reached each node, and the number of this search.
fn behind(
    queues: &[Queue],
    index: &Index,
    net: &Net,
    root: usize,
    (search, seen): &mut (usize, &mut [usize]),
) -> Vec<(Party, usize)> {
    let mut is_new = |node: usize| match seen.get_mut(node) {
        Some(last) if last != search => {
            *last = *search;
            true
        }
        _ => false,
    };
    is_new(root);
    let mut found = Vec::new();
    let mut go = |from: Vec<usize>, number: usize| {
        let mut todo: Vec<usize> = from.into_iter().filter(|node| is_new(*node)).collect();
        while let Some(node) = todo.pop() {
            if node < index.len() {
                found.push((index.party(node), number));
            }
            todo.extend(net.backward.of(node).iter().copied().filter(|next| is_new(*next)));
        }
    };
    for (number, modes) in index.holds(root) {
        let (Some(queue), Some(members)) = (queues.get(*number), index.members(*number)) else { continue };
        let waiting = members.waiters.iter().zip(&queue.waiters);
        let stopped = waiting.filter(|(_, waiter)| waiter.mode.conflicts_with(*modes));
        go(stopped.map(|(group, _)| *group).collect(), *number);
    }
    // A waiter without a blocker is about to be granted its lock.
    if let Some((number, _)) = index.waits(root).first() {
        go(net.backward.of(root).to_vec(), *number);
    }
    found
}

/// The leaders of processes that are not leaders themselves.
#[derive(Debug)]
pub(super) struct Leaders(FxHashMap<i32, i32>);

impl Leaders {
    /// From the backends and, if those are hidden from the connected role, from the server's answers.
    pub(super) fn new(input: Input<'_>, rows: &[Rows]) -> Self {
        let leaders = input.backends.iter().map(|backend| (backend.pid, backend.group()));
        let mut leaders = Self(leaders.filter(|(pid, leader)| pid != leader).collect());
        if !input.answers.is_empty() && input.backends.iter().any(is_hidden) {
            Lesson::new(input, rows).learn(&mut leaders);
        }
        leaders
    }

    /// The group of a row of `pg_locks`.
    pub(super) fn party(&self, lock: &Lock) -> Party {
        lock.pid.map_or(Party::Prepared(lock.virtualtransaction), |pid| Party::Backend(self.leader(pid)))
    }

    fn leader(&self, pid: i32) -> i32 {
        self.0.get(&pid).copied().unwrap_or(pid)
    }
}

/// Whether the role may not see this backend: then `leader_pid` is always NULL.
fn is_hidden(backend: &Backend) -> bool {
    backend.backend_type.is_none() && backend.leader_pid.is_none()
}

/// `pg_blocking_pids` works for every role and names leaders: a leader once for itself and once more for each blocking
/// process of its group. So if a leader that holds the lock is named more often than the scan explains, and as many
/// hidden holders are not named at all, those are the members of its group.
///
/// With several such leaders on one lock, their members cannot be told apart; they are then assigned in order, and the
/// edges to them are still correct.
struct Lesson<'a> {
    input: Input<'a>,
    rows: &'a [Rows],
    hidden: FxHashSet<i32>,
    /// The queue and the row of each waiting process.
    waiting: FxHashMap<i32, (usize, usize)>,
}

impl<'a> Lesson<'a> {
    fn new(input: Input<'a>, rows: &'a [Rows]) -> Self {
        let hidden = input.backends.iter().filter(|backend| is_hidden(backend)).map(|backend| backend.pid);
        let waiting = rows.iter().enumerate().flat_map(|(queue, rows)| {
            let pid = |row: usize| input.locks.get(row).and_then(|lock| lock.pid);
            rows.waiting.iter().filter_map(move |row| Some((pid(*row)?, (queue, *row))))
        });
        Self { input, rows, hidden: hidden.collect(), waiting: waiting.collect() }
    }

    fn learn(&self, leaders: &mut Leaders) {
        for answer in self.input.answers {
            let learned = self.of(answer, leaders).unwrap_or_default();
            for (member, leader) in learned {
                leaders.0.entry(member).or_insert(leader);
            }
        }
    }

    /// Members and their leaders, as derived from one answer.
    fn of(&self, answer: &Answer, leaders: &Leaders) -> Option<Vec<(i32, i32)>> {
        let (queue, row) = self.waiting.get(&answer.waiter)?;
        let waiter = self.input.locks.get(*row)?;
        if waiter.wait_start.is_none() || waiter.wait_start != answer.wait_start {
            return None;
        }
        let mut named: FxHashMap<i32, usize> = FxHashMap::default();
        for blocker in answer.blockers.iter().filter(|blocker| **blocker != 0) {
            *named.entry(*blocker).or_default() += 1;
        }
        let mut holders: Vec<i32> = self
            .rows
            .get(*queue)?
            .granted
            .iter()
            .filter_map(|row| self.input.locks.get(*row))
            .filter(|lock| waiter.mode.conflicts_with(LockModes::of(lock.mode)))
            .filter_map(|lock| lock.pid)
            .filter(|pid| *pid != answer.waiter)
            .collect();
        holders.sort_unstable();
        holders.dedup();
        let mut surplus: Vec<i32> = Vec::new();
        for (leader, times) in &named {
            if holders.binary_search(leader).is_ok() {
                let explained = holders.iter().filter(|pid| leaders.leader(**pid) == *leader).count();
                surplus.extend(std::iter::repeat_n(*leader, times.saturating_sub(explained)));
            }
        }
        holders.retain(|pid| !named.contains_key(&leaders.leader(*pid)));
        if surplus.len() != holders.len() || !holders.iter().all(|pid| self.hidden.contains(pid)) {
            return None;
        }
        surplus.sort_unstable();
        Some(holders.into_iter().zip(surplus).collect())
    }
}
