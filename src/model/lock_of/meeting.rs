use rustc_hash::{FxHashMap, FxHashSet};

use super::{Key, Want};
use crate::model::Timestamp;
use crate::model::backend::Backend;
use crate::model::lock::{Lock, LockMode, LockModes};
use crate::model::snapshot::Snapshot;
use crate::model::statement::{Statement, first};
use crate::model::view::View;
use crate::model::wait_graph::Party;

/// Why a session blocks the statement. The order is the priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    Holds,
    /// It waits for the lock in a mode that conflicts.
    Ahead,
    /// It holds the lock in a mode that does not conflict, but the statement waits for such transactions to end.
    Transaction,
    /// Its snapshot is older, and the statement waits for its transaction to end.
    Snapshot,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Obstacle {
    /// The leader of its parallel group, or the prepared transaction.
    pub party: Party,
    /// If several apply, the first in the order of [`How`]: a session with a conflicting lock counts as a holder.
    pub how: How,
    pub modes: LockModes,
    /// `xact_start` of the session, or the time of PREPARE TRANSACTION; `None` if the role may not see it.
    pub since: Option<Timestamp>,
    pub roots: Vec<Party>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meeting {
    /// Blockers: first sessions that do not wait themselves, last sessions that are queued; within each group the oldest
    /// transaction first.
    pub in_the_way: Vec<Obstacle>,
    /// Number of sessions that hold a lock on it, in any mode.
    pub using: usize,
    /// Number of sessions that may have locked rows that the statement wants, if it locks or changes rows: those that hold
    /// `RowShare` or `RowExclusive`. No view shows which rows (`src/backend/access/heap/README.tuplock`).
    pub row_lockers: usize,
    pub waiting: usize,
    pub oldest: Option<(Party, Timestamp)>,
    /// Sessions of the database for which the role cannot see whether they have a snapshot that the statement waits for.
    pub hidden: usize,
}

pub fn meeting(view: &View, statement: &Statement, wants: &[Want<'_>]) -> Meeting {
    let snapshot = view.snapshot.as_deref();
    let rows = snapshot.map_or(&[][..], |snapshot| snapshot.locks.last_rows());
    let server = snapshot.and_then(Snapshot::server);
    let (datid, own) = server.map_or((0, 0), |server| (server.datid, server.own_pid));
    let mut wanted: FxHashMap<Key, (LockModes, bool)> = FxHashMap::default();
    for want in wants {
        let one = wanted.entry(want.key).or_default();
        one.0 = one.0.union(LockModes::of(want.mode));
        one.1 |= want.is_subject;
    }
    let mut found = Meeting::default();
    let mut users: FxHashSet<Party> = FxHashSet::default();
    let mut row_lockers: FxHashSet<Party> = FxHashSet::default();
    let mut obstacles: FxHashMap<Party, Obstacle> = FxHashMap::default();
    for lock in rows.iter().filter(|lock| lock.pid != Some(own)) {
        let Some((modes, is_subject)) = Key::of(lock, datid).and_then(|key| wanted.get(&key)) else {
            continue;
        };
        let (party, since) = who(view, snapshot, lock);
        if lock.granted && users.insert(party) {
            found.using += 1;
            if let Some(since) = since.filter(|since| found.oldest.is_none_or(|(_, oldest)| *since < oldest))
            {
                found.oldest = Some((party, since));
            }
        }
        found.waiting += usize::from(!lock.granted);
        let locks_rows = |mode: LockMode| matches!(mode, LockMode::RowShare | LockMode::RowExclusive);
        if lock.granted && locks_rows(lock.mode) && modes.iter().any(locks_rows) {
            row_lockers.insert(party);
        }
        let waits_for = statement.waits_for().filter(|_| *is_subject);
        let Some(how) = how(lock, *modes, waits_for) else { continue };
        let modes = LockModes::of(lock.mode);
        put(&mut obstacles, &Obstacle { party, how, modes, since, roots: Vec::new() });
    }
    let is_about = wants.iter().any(|want| want.is_subject);
    if let Some(snapshot) = snapshot.filter(|_| is_about && statement.waits_for_snapshots()) {
        for backend in
            snapshot.backends.last_rows().iter().filter(|one| one.datid == Some(datid) && one.pid != own)
        {
            match (has_snapshot(backend), is_hidden(backend)) {
                (true, _) => put(
                    &mut obstacles,
                    &Obstacle {
                        party: Party::Backend(backend.group()),
                        how: How::Snapshot,
                        modes: LockModes::default(),
                        since: backend.xact_start,
                        roots: Vec::new(),
                    },
                ),
                (false, hidden) => found.hidden += usize::from(hidden),
            }
        }
    }
    found.row_lockers = row_lockers.len();
    found.in_the_way = obstacles.into_values().collect();
    for one in found.in_the_way.iter_mut().filter(|one| one.how != How::Ahead) {
        if view.graph.wait_of(one.party).is_some() {
            one.roots = view.graph.roots_above(one.party);
        }
    }
    let order = |one: &Obstacle| {
        (one.how == How::Ahead, !one.roots.is_empty(), one.how, one.since.is_none(), one.since, one.party)
    };
    found.in_the_way.sort_by_key(order);
    found
}

fn put(obstacles: &mut FxHashMap<Party, Obstacle>, new: &Obstacle) {
    let one = obstacles.entry(new.party).or_insert_with(|| new.clone());
    one.how = one.how.min(new.how);
    one.modes = one.modes.union(new.modes);
}

fn how(lock: &Lock, wanted: LockModes, waits_for: Option<LockMode>) -> Option<How> {
    let has = LockModes::of(lock.mode);
    let conflicts = wanted.iter().any(|mode| mode.conflicts_with(has));
    let ends = || waits_for.is_some_and(|mode| lock.granted && mode.conflicts_with(has));
    match (conflicts, lock.granted) {
        (true, true) => Some(How::Holds),
        (true, false) => Some(How::Ahead),
        (false, _) => ends().then_some(How::Transaction),
    }
}

/// Whether an index build waits for the snapshot of the session: `GetCurrentVirtualXIDs` as called by
/// `WaitForOlderSnapshots` in `src/backend/commands/indexcmds.c`. VACUUM and other index builds of the same kind are
/// excluded.
fn has_snapshot(backend: &Backend) -> bool {
    let is_vacuum = backend.backend_type.as_deref() == Some("autovacuum worker");
    let is_build = || {
        let name = backend
            .query
            .as_ref()
            .and_then(|query| first(query.unredacted(), 4096))
            .map(|statement| statement.name);
        name.is_some_and(|name| {
            name == "VACUUM" || name.starts_with("CREATE INDEX CONC") || name.starts_with("REINDEX ")
        })
    };
    backend.backend_xmin.is_some() && !is_vacuum && !is_build()
}

fn is_hidden(backend: &Backend) -> bool {
    backend.backend_type.is_none() && backend.state.is_none() && backend.backend_start.is_none()
}

fn who(view: &View, snapshot: Option<&Snapshot>, lock: &Lock) -> (Party, Option<Timestamp>) {
    let backend = |pid: i32| -> Option<&Backend> { view.index.backend(snapshot?, pid) };
    if let Some(pid) = lock.pid {
        let group = backend(pid).map_or(pid, Backend::group);
        return (Party::Backend(group), backend(group).and_then(|backend| backend.xact_start));
    }
    let prepared = snapshot.and_then(|snapshot| view.index.prepared(snapshot, lock.virtualtransaction));
    (Party::Prepared(lock.virtualtransaction), prepared.and_then(|row| row.prepared))
}
