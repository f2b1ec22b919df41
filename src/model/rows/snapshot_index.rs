//! Positions in a snapshot and in its wait graph. Built once per snapshot and shared by findings, events, screens and
//! reports.

use rustc_hash::FxHashMap;

use crate::model::awaited_locks::{AwaitedLocks, AwaitedRows};
use crate::model::backend::Backend;
use crate::model::lock::{Lock, LockTag, LockType, Prepared, VirtualTransaction};
use crate::model::snapshot::Snapshot;
use crate::model::wait_graph::{Party, Queue, Root, TreeNode, WaitGraph};

/// Positions in one snapshot and its graph. Callers must pass the same two that it was built from.
#[derive(Debug, Clone, Default)]
pub struct SnapshotIndex {
    backends: FxHashMap<i32, u32>,
    queues: FxHashMap<LockTag, u32>,
    nodes: FxHashMap<Party, u32>,
    roots: FxHashMap<Party, u32>,
    in_cycles: FxHashMap<Party, u32>,
    /// By the `virtualtransaction` of its locks.
    prepared: FxHashMap<VirtualTransaction, usize>,
    awaited: AwaitedRows,
    awaited_locks: AwaitedLocks,
}

impl SnapshotIndex {
    pub fn of(snapshot: &Snapshot, graph: &WaitGraph) -> Self {
        let awaited = AwaitedRows::of(snapshot, graph);
        Self {
            backends: positions(snapshot.backends.last_rows().iter().map(|backend| backend.pid)),
            queues: positions(graph.queues.iter().map(|queue| queue.tag)),
            nodes: positions(graph.tree.nodes.iter().map(|node| node.party)),
            roots: positions(graph.roots.iter().map(|root| root.party)),
            in_cycles: positions(graph.in_cycles.iter().map(|member| member.party)),
            prepared: prepared(snapshot),
            awaited_locks: AwaitedLocks::of(graph, &awaited),
            awaited,
        }
    }

    pub fn backend<'a>(&self, snapshot: &'a Snapshot, pid: i32) -> Option<&'a Backend> {
        snapshot.backends.last_rows().get(*self.backends.get(&pid)? as usize)
    }

    pub fn prepared<'a>(&self, snapshot: &'a Snapshot, xact: VirtualTransaction) -> Option<&'a Prepared> {
        snapshot.prepared.last_rows().get(*self.prepared.get(&xact)?)
    }

    pub fn queue<'a>(&self, graph: &'a WaitGraph, tag: &LockTag) -> Option<&'a Queue> {
        graph.queues.get(*self.queues.get(tag)? as usize)
    }

    /// The position of a party in the forest; `None` if it neither waits nor blocks.
    pub fn node<'a>(&self, graph: &'a WaitGraph, party: Party) -> Option<(usize, &'a TreeNode)> {
        let at = *self.nodes.get(&party)? as usize;
        Some((at, graph.tree.nodes.get(at)?))
    }

    pub fn root<'a>(&self, graph: &'a WaitGraph, party: Party) -> Option<&'a Root> {
        graph.roots.get(*self.roots.get(&party)? as usize)
    }

    /// The effect of ending a root, or a party of a deadlock.
    pub fn ending<'a>(&self, graph: &'a WaitGraph, party: Party) -> Option<&'a Root> {
        let in_cycle = || graph.in_cycles.get(*self.in_cycles.get(&party)? as usize);
        self.root(graph, party).or_else(in_cycle)
    }

    pub fn awaited_locks(&self) -> &AwaitedLocks {
        &self.awaited_locks
    }

    /// The lock that `waiter` waits for: for a transaction the row behind it, if known.
    pub fn awaited<'a>(&'a self, tag: &'a LockTag, waiter: i32) -> &'a LockTag {
        self.awaited.awaited(tag, waiter)
    }
}

/// For duplicate keys, the last position.
fn positions<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> FxHashMap<K, u32> {
    keys.enumerate().map(|(at, key)| (key, u32::try_from(at).unwrap_or(u32::MAX))).collect()
}

/// A prepared transaction holds the lock on its transaction id without a process; that row links the `virtualtransaction` of
/// its locks to its row in `pg_prepared_xacts`.
fn prepared(snapshot: &Snapshot) -> FxHashMap<VirtualTransaction, usize> {
    let rows = snapshot.prepared.last_rows().iter().enumerate();
    let by_xid: FxHashMap<u32, usize> = rows.map(|(at, row)| (row.transaction, at)).collect();
    if by_xid.is_empty() {
        return FxHashMap::default();
    }
    let locks = snapshot.locks.last_rows().iter();
    let own = locks.filter(|lock| lock.pid.is_none() && lock.tag.locktype() == LockType::TransactionId);
    let pair = |lock: &Lock| Some((lock.virtualtransaction, *by_xid.get(&lock.tag.transactionid()?)?));
    own.filter_map(pair).collect()
}
