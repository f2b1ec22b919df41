use rustc_hash::{FxHashMap, FxHashSet};

use super::rows::Rows;
use super::{Answer, Input, Party};
use crate::backend::Backend;
use crate::lock::{Lock, LockModes};

/// The leaders of processes that are not leaders themselves.
#[derive(Debug)]
pub(super) struct Leaders(FxHashMap<i32, i32>);

impl Leaders {
    /// From the backends and, if those are hidden from the connected role, from the server's answers.
    pub(super) fn new(input: Input<'_>, rows: &[Rows]) -> Self {
        let mut leaders = Self(input.backends.iter().filter_map(led).collect());
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

/// A process and its leader, if it has another one. A parallel apply worker of logical replication has a leader too,
/// but is not a member of its lock group: the two can block each other (`pg_stat_get_activity` in
/// `src/backend/utils/adt/pgstatfuncs.c`).
fn led(backend: &Backend) -> Option<(i32, i32)> {
    let leader = backend.leader_pid.filter(|leader| *leader != backend.pid)?;
    let is_group = backend.backend_type.as_deref() != Some("logical replication parallel worker");
    is_group.then_some((backend.pid, leader))
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
