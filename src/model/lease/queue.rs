//! The queue for a lease of locktop's schema is an advisory lock ([`locktop_locks::lease`]). Its holder is the first of the queue, and
//! waits for the lease itself, which `pg_locks` does not show.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::{Board, Lease, LeaseRow};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::hashtextextended;
use crate::model::snapshot::Snapshot;
use crate::model::systems::Source;
use crate::model::view::View;
use crate::model::wait_graph::{Party, Queue, Release, WaitGraph};

pub(super) fn key(source: &Source, lease: &Lease) -> Option<LockKey> {
    let schema = source.name.strip_suffix(".distlock").filter(|_| source.own_keys)?;
    let id = match &lease.name {
        Some(name) => Cow::Owned(format!("'{}'", name.replace('\'', "''"))),
        None => Cow::Borrowed(&*lease.id),
    };
    let name = format!("locktop lease \"{}\" {id}", schema.replace('"', "\"\""));
    Some(LockKey::Bigint(hashtextextended(name.as_bytes(), 0)))
}

impl Board {
    /// The board with the sessions that are first in the queue of a lease.
    #[must_use]
    pub fn with_fronts(mut self, graph: &WaitGraph, snapshot: &Snapshot) -> Self {
        let rows = self.rows.iter().enumerate();
        let keys: FxHashMap<LockKey, usize> = rows.filter_map(|(at, row)| Some((row.queue?, at))).collect();
        let datid = snapshot.server().map(|server| server.datid);
        let lease = |queue: &Queue| {
            keys.get(&queue.tag.advisory_key().filter(|_| queue.tag.database() == datid)?).copied()
        };
        // A session that blocks others by another lock, too, is an ordinary blocker.
        let mut fronts: FxHashMap<Party, Option<usize>> = FxHashMap::default();
        for queue in graph.queues.iter().filter(|_| !keys.is_empty()) {
            let lease = lease(queue);
            for holder in &queue.holders {
                let found = fronts.entry(holder.party).or_insert(lease);
                *found = found.and(lease);
            }
        }
        self.fronts = fronts.into_iter().filter_map(|(party, lease)| Some((party, lease?))).collect();
        self
    }

    /// The end of a session that is first in a queue frees no session: the next one waits for the lease, too.
    pub fn hold_back(&self, graph: &mut WaitGraph) {
        for root in graph.roots.iter_mut().filter(|root| self.fronts.contains_key(&root.party)) {
            root.still_blocked += root.frees + root.in_turn;
            (root.frees, root.in_turn, root.others_must_end) = (0, 0, None);
        }
    }

    /// The same for some of them together.
    pub fn held_back(&self, parties: &[Party], release: Release) -> Release {
        if parties.is_empty() || !parties.iter().all(|party| self.fronts.contains_key(party)) {
            return release;
        }
        let still = [release.still, release.now, release.in_turn].concat();
        Release { still, now: Vec::new(), in_turn: Vec::new(), others: Vec::new(), ..release }
    }
}

impl View {
    /// The lease that the sessions behind this one wait for, if it is the first in its queue and blocks no others.
    pub fn first_for_lease(&self, party: Party) -> Option<&LeaseRow> {
        self.leases.rows.get(*self.leases.fronts.get(&party)?)
    }

    /// Whether it is the queue of a lease.
    pub fn is_for_lease(&self, queue: &Queue) -> bool {
        queue.holders.iter().any(|holder| self.leases.fronts.contains_key(&holder.party))
    }
}
