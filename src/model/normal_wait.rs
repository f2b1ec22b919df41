//! Sessions that wait for a lease, for a permit of a semaphore, or to be elected leader, in calls of [`locktop_locks`]. They queue for an
//! advisory lock. Its holder is the leader, or the first session in the queue, which polls for the lease or the permit; `pg_locks` does
//! not show that.

use rustc_hash::FxHashMap;

use super::backend::{Backend, State};
use super::lease::Board;
use super::lock::LockMode;
use super::lock_key::LockKey;
use super::lock_name::{Waited, waited};
use super::snapshot::Snapshot;
use super::snapshot_index::SnapshotIndex;
use super::wait_graph::{Holder, Party, Queue, Release, WaitGraph};
use super::{Text, Timestamp};

/// What the sessions behind a party wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NormalWait {
    /// The lease at this place of the board; the party is the first session in its queue.
    Lease(usize),
    /// A permit of this semaphore; the party is the first session in its queue.
    Permit(Text),
    /// To be elected under this name; the party is the leader.
    Leader(Text),
}

impl NormalWait {
    /// Its word in the JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Lease(_) => "lease",
            Self::Permit(_) => "permit",
            Self::Leader(_) => "leader",
        }
    }
}

/// Seconds without a statement after which the first session in a queue is an ordinary blocker: one that works polls at least every
/// second, unless its program sets a longer `retry`.
const SILENT: f64 = 60.0;

/// The parties behind which all sessions wait for the same of these.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NormalWaits(FxHashMap<Party, NormalWait>);

impl NormalWaits {
    /// Any doubt makes a party an ordinary blocker: another lock, sessions behind its waiters, an open transaction, a statement
    /// that is not known.
    pub fn of(graph: &WaitGraph, leases: &Board, snapshot: &Snapshot, index: &SnapshotIndex) -> Self {
        let rows = leases.rows.iter().enumerate();
        let keys: FxHashMap<LockKey, usize> = rows.filter_map(|(at, row)| Some((row.queue?, at))).collect();
        let datid = snapshot.server().map(|server| server.datid);
        let mut found: FxHashMap<Party, Option<(NormalWait, u32)>> = FxHashMap::default();
        for queue in &graph.queues {
            let key = queue.tag.advisory_key();
            let lease = || keys.get(&key.filter(|_| queue.tag.database() == datid)?).copied();
            let query = |pid: i32| index.backend(snapshot, pid)?.query.as_ref();
            let by_statements = || match waited(key?, queue.waiters.iter().map(|waiter| query(waiter.pid)))? {
                Waited::Permit(name) => Some(NormalWait::Permit(name.into())),
                Waited::Leader(name) => Some(NormalWait::Leader(name.into())),
            };
            let wait = lease().map(NormalWait::Lease).or_else(by_statements);
            for holder in &queue.holders {
                let fits = |wait: &NormalWait| is_at_work(wait, key, holder, (snapshot, index));
                let own = wait.clone().filter(fits).map(|wait| (wait, parties(queue)));
                // A session that holds several awaited locks is an ordinary blocker.
                found.entry(holder.party).and_modify(|known| *known = None).or_insert(own);
            }
        }
        let alone = |(party, own): (Party, Option<(NormalWait, u32)>)| {
            let (wait, waiters) = own?;
            let root = index.root(graph, party)?;
            (root.blocked == waiters).then_some((party, wait))
        };
        Self(found.into_iter().filter_map(alone).collect())
    }

    pub fn get(&self, party: Party) -> Option<&NormalWait> {
        self.0.get(&party)
    }

    fn is_first(&self, party: Party) -> bool {
        matches!(self.get(party), Some(NormalWait::Lease(_) | NormalWait::Permit(_)))
    }

    /// Whether [`Self::hold_back`] would change the graph.
    pub fn holds_back(&self, graph: &WaitGraph) -> bool {
        graph.roots.iter().any(|root| root.frees + root.in_turn > 0 && self.is_first(root.party))
    }

    /// If the first session in a queue ends, the next one becomes the first: none gets the lease or the permit by that.
    pub fn hold_back(&self, graph: &mut WaitGraph) {
        for root in graph.roots.iter_mut().filter(|root| self.is_first(root.party)) {
            root.still_blocked += root.frees + root.in_turn;
            (root.frees, root.in_turn, root.others_must_end) = (0, 0, None);
        }
    }

    /// The same for the end of several parties.
    pub fn held_back(&self, graph: &WaitGraph, parties: &[Party], release: Release) -> Release {
        let first: Vec<Party> = parties.iter().copied().filter(|party| self.is_first(*party)).collect();
        if first.is_empty() {
            return release;
        }
        let behind = graph.blocked_by_all(&first);
        let is_behind = |party: &Party| behind.contains(party);
        let (held, now) = release.now.into_iter().partition::<Vec<_>, _>(is_behind);
        let (more, in_turn) = release.in_turn.into_iter().partition::<Vec<_>, _>(is_behind);
        let others = if held.is_empty() && more.is_empty() { release.others } else { Vec::new() };
        Release { still: [release.still, held, more].concat(), now, in_turn, others, ..release }
    }
}

/// Distinct parties that wait in a queue.
fn parties(queue: &Queue) -> u32 {
    let mut parties: Vec<Party> = queue.waiters.iter().map(|waiter| waiter.party).collect();
    parties.sort_unstable();
    parties.dedup();
    u32::try_from(parties.len()).unwrap_or(u32::MAX)
}

/// Whether the holder does what it must: the first in a queue has polled a moment ago, and the last statement of a leader is its election.
fn is_at_work(
    wait: &NormalWait,
    key: Option<LockKey>,
    holder: &Holder,
    (snapshot, index): (&Snapshot, &SnapshotIndex),
) -> bool {
    let Party::Backend(pid) = holder.party else { return false };
    let Some(backend) = index.backend(snapshot, pid) else { return false };
    if !holder.modes.iter().any(|mode| mode == LockMode::Exclusive) {
        return false;
    }
    match wait {
        NormalWait::Lease(_) | NormalWait::Permit(_) => {
            !backend.state.is_none_or(State::is_idle_in_transaction)
                && last_action(backend).is_some_and(|at| (snapshot.taken_at - at).as_seconds_f64() < SILENT)
        }
        NormalWait::Leader(name) => {
            let elected = key.and_then(|key| waited(key, std::iter::once(backend.query.as_ref())));
            let is_elected = elected.is_some_and(|elected| elected == Waited::Leader(name.to_string()));
            backend.state == Some(State::Idle) && backend.xact_start.is_none() && is_elected
        }
    }
}

fn last_action(backend: &Backend) -> Option<Timestamp> {
    backend.state_change.max(backend.query_start)
}
