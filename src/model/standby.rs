//! Waits by design, in calls of [`locktop_locks`]: those who wait for a lease or a permit queue for an advisory lock, whose holder is
//! the first of the queue and waits itself, which `pg_locks` does not show; and those who would lead wait for the leader.

use rustc_hash::FxHashMap;

use super::Text;
use super::lease::Board;
use super::lock_key::LockKey;
use super::lock_name::{LockNames, Waited};
use super::snapshot::Snapshot;
use super::snapshot_index::SnapshotIndex;
use super::wait_graph::{Party, Queue, Release, WaitGraph};

/// What a party is that such sessions wait for.
#[derive(Debug, Clone, PartialEq)]
pub enum Standby {
    /// The first in the queue for the lease at this place of the board.
    Lease(usize),
    /// The first in the queue for a permit of this semaphore.
    Permit(Text),
    /// The leader that was elected under this name.
    Leader(Text),
}

/// The parties that block others only by such a lock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standbys(FxHashMap<Party, Standby>);

impl Standbys {
    pub fn of(
        graph: &WaitGraph,
        (leases, names): (&Board, &LockNames),
        snapshot: &Snapshot,
        index: &SnapshotIndex,
    ) -> Self {
        let rows = leases.rows.iter().enumerate();
        let keys: FxHashMap<LockKey, usize> = rows.filter_map(|(at, row)| Some((row.queue?, at))).collect();
        let datid = snapshot.server().map(|server| server.datid);
        let mut found: FxHashMap<Party, Option<Standby>> = FxHashMap::default();
        for queue in &graph.queues {
            let key = queue.tag.advisory_key();
            let lease = || Some(Standby::Lease(*keys.get(&key.filter(|_| queue.tag.database() == datid)?)?));
            let by_name = || by_statements(queue, key?, names, (snapshot, index));
            let standby = lease().or_else(by_name);
            for holder in &queue.holders {
                let entry = found.entry(holder.party).or_insert_with(|| standby.clone());
                if *entry != standby {
                    *entry = None;
                }
            }
        }
        Self(found.into_iter().filter_map(|(party, standby)| Some((party, standby?))).collect())
    }

    fn is_first(&self, party: Party) -> bool {
        matches!(self.get(party), Some(Standby::Lease(_) | Standby::Permit(_)))
    }

    /// The end of a session that is first in a queue frees no session: the next one waits for the same.
    pub fn hold_back(&self, graph: &mut WaitGraph) {
        for root in graph.roots.iter_mut().filter(|root| self.is_first(root.party)) {
            root.still_blocked += root.frees + root.in_turn;
            (root.frees, root.in_turn, root.others_must_end) = (0, 0, None);
        }
    }

    /// The same for some of them together.
    pub fn held_back(&self, parties: &[Party], release: Release) -> Release {
        if parties.is_empty() || !parties.iter().all(|party| self.is_first(*party)) {
            return release;
        }
        let still = [release.still, release.now, release.in_turn].concat();
        Release { still, now: Vec::new(), in_turn: Vec::new(), others: Vec::new(), ..release }
    }
}

/// By the statements of all who wait: each names what it waits for.
fn by_statements(
    queue: &Queue,
    key: LockKey,
    names: &LockNames,
    (snapshot, index): (&Snapshot, &SnapshotIndex),
) -> Option<Standby> {
    let mut all = queue.waiters.iter().map(|waiter| {
        let query = index.backend(snapshot, waiter.pid)?.query.as_ref()?;
        names.waited(key, query)
    });
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then(|| match first {
        Waited::Permit(name) => Standby::Permit(name.into()),
        Waited::Leader(name) => Standby::Leader(name.into()),
    })
}

impl Standbys {
    pub fn get(&self, party: Party) -> Option<&Standby> {
        self.0.get(&party)
    }
}
