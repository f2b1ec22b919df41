//! The rules again, row by row and not optimized.

use std::collections::{BTreeMap, BTreeSet};

use super::script::Scan;
use crate::graph::{EdgeKind, Party};
use crate::lock::{LockMode, LockTag, LockType};

/// Table 13.2 of the documentation: the modes, weakest first, down and across.
const CONFLICTS: [&str; 8] =
    [".......x", "......xx", "....xxxx", "...xxxxx", "..xx.xxx", "..xxxxxx", ".xxxxxxx", "xxxxxxxx"];

pub(super) fn conflict(one: LockMode, other: LockMode) -> bool {
    let mark = CONFLICTS.get(one as usize - 1).and_then(|row| row.as_bytes().get(other as usize - 1));
    mark == Some(&b'x')
}

#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) party: Party,
    pub(super) mode: LockMode,
    pub(super) row: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Reference {
    pub(super) queues: BTreeMap<LockTag, Vec<Wait>>,
    pub(super) holds: BTreeMap<LockTag, BTreeSet<(Party, LockMode)>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Keeps {
    Nothing,
    Advisory,
    All,
}

impl Keeps {
    fn keep(self, tag: LockTag) -> bool {
        match self {
            Self::Nothing => false,
            Self::Advisory => tag.locktype() == LockType::Advisory,
            Self::All => true,
        }
    }
}

pub(super) type Edges = BTreeSet<(Party, Party, EdgeKind, usize)>;

impl Reference {
    pub(super) fn new(scan: &Scan) -> Self {
        let party = |row: usize| {
            let lock = &scan.locks[row];
            let Some(pid) = lock.pid else { return Party::Prepared(lock.virtualtransaction) };
            let leader = scan.backends.iter().rev().find(|backend| backend.pid == pid);
            Party::Backend(leader.and_then(|backend| backend.leader_pid).unwrap_or(pid))
        };
        let mut slow = Self::default();
        for (row, lock) in scan.locks.iter().enumerate().filter(|(_, lock)| lock.granted) {
            slow.holds.entry(lock.tag).or_default().insert((party(row), lock.mode));
        }
        let mut waits: Vec<usize> = (0..scan.locks.len())
            .filter(|row| !scan.locks[*row].granted && scan.locks[*row].mode != LockMode::SIRead)
            .filter(|row| {
                let lock = &scan.locks[*row];
                !scan.locks[..*row].iter().any(|other| {
                    !other.granted
                        && other.mode != LockMode::SIRead
                        && other.tag == lock.tag
                        && other.pid == lock.pid
                        && (lock.pid.is_some() || other.virtualtransaction == lock.virtualtransaction)
                })
            })
            .collect();
        waits.sort_by_key(|row| {
            let lock = &scan.locks[*row];
            (lock.wait_start.is_none(), lock.wait_start, lock.pid.unwrap_or(0), party(*row), *row)
        });
        for row in waits {
            let lock = &scan.locks[row];
            let (party, mode) = (party(row), lock.mode);
            let own: Vec<LockMode> = slow.held(lock.tag, party);
            let queue = slow.queues.entry(lock.tag).or_default();
            let stopped =
                |wait: &Wait| wait.party != party && own.iter().any(|held| conflict(wait.mode, *held));
            let place = queue.iter().position(stopped).unwrap_or(queue.len());
            queue.insert(place, Wait { party, mode, row });
        }
        slow
    }

    pub(super) fn held(&self, tag: LockTag, party: Party) -> Vec<LockMode> {
        let holds = self.holds.get(&tag).into_iter().flatten();
        holds.filter(|(holder, _)| *holder == party).map(|(_, mode)| *mode).collect()
    }

    pub(super) fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (tag, queue) in &self.queues {
            for (place, wait) in queue.iter().enumerate() {
                for (holder, mode) in self.holds.get(tag).into_iter().flatten() {
                    if *holder != wait.party && conflict(wait.mode, *mode) {
                        edges.insert((wait.party, *holder, EdgeKind::Holder, wait.row));
                    }
                }
                for other in &queue[..place] {
                    if other.party != wait.party && conflict(wait.mode, other.mode) {
                        edges.insert((wait.party, other.party, EdgeKind::Queue, wait.row));
                    }
                }
            }
        }
        edges
    }

    /// The effect of the server's wakeup on each queue after the party has ended.
    pub(super) fn freed(&self, gone: Party) -> BTreeSet<Party> {
        self.clone().go(&BTreeSet::from([gone]), Keeps::Nothing)
    }

    /// Parties that wait only for `gone` and, without a cycle, for one another.
    pub(super) fn released(&self, gone: &BTreeSet<Party>, keeps: Keeps) -> BTreeSet<Party> {
        let tags: BTreeMap<usize, LockTag> =
            self.queues.iter().flat_map(|(tag, queue)| queue.iter().map(|wait| (wait.row, *tag))).collect();
        let mut waits: BTreeMap<Party, Vec<(Party, bool)>> =
            self.queues.values().flatten().map(|wait| (wait.party, Vec::new())).collect();
        for (waiter, blocker, kind, row) in self.edges() {
            let stays = kind == EdgeKind::Holder && keeps.keep(tags[&row]);
            waits.get_mut(&waiter).unwrap().push((blocker, stays));
        }
        waits.retain(|party, _| !gone.contains(party));
        let mut released = BTreeSet::new();
        loop {
            let is_away =
                |(party, stays): &(Party, bool)| released.contains(party) || gone.contains(party) && !stays;
            let free = waits.iter().filter(|(_, blockers)| blockers.iter().all(is_away));
            let more: Vec<Party> = free.map(|(party, _)| *party).collect();
            if more.iter().all(|party| released.contains(party)) {
                return released;
            }
            released.extend(more);
        }
    }

    /// The same for several. Afterwards the state is as on the server.
    pub(super) fn go(&mut self, gone: &BTreeSet<Party>, keeps: Keeps) -> BTreeSet<Party> {
        let mut freed = BTreeSet::new();
        for (tag, queue) in &mut self.queues {
            let holds = self.holds.entry(*tag).or_default();
            let goes = |party: Party| gone.contains(&party) && !keeps.keep(*tag);
            let is_released = holds
                .iter()
                .any(|(party, mode)| goes(*party) && queue.iter().any(|wait| conflict(wait.mode, *mode)));
            let leaves = queue.iter().any(|wait| gone.contains(&wait.party));
            holds.retain(|(party, _)| !goes(*party));
            queue.retain(|wait| !gone.contains(&wait.party));
            if !is_released && !leaves {
                continue;
            }
            let mut ahead: Vec<LockMode> = Vec::new();
            queue.retain(|wait| {
                let held =
                    holds.iter().any(|(party, mode)| *party != wait.party && conflict(wait.mode, *mode));
                let stays = held || ahead.iter().any(|mode| conflict(wait.mode, *mode));
                if stays {
                    ahead.push(wait.mode);
                } else {
                    holds.insert((wait.party, wait.mode));
                    freed.insert(wait.party);
                }
                stays
            });
        }
        freed
    }
}

pub(super) fn behind(edges: &Edges, target: Party) -> BTreeSet<Party> {
    let mut found = BTreeSet::from([target]);
    loop {
        let more: Vec<Party> = edges
            .iter()
            .filter(|(waiter, blocker, ..)| found.contains(blocker) && !found.contains(waiter))
            .map(|(waiter, ..)| *waiter)
            .collect();
        if more.is_empty() {
            found.remove(&target);
            return found;
        }
        found.extend(more);
    }
}
