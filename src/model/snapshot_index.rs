//! Where things are in a snapshot, and in what follows from its locks. Built once a snapshot; findings, events, screens and reports all
//! read the same one.

use rustc_hash::FxHashMap;

use super::awaited_locks::AwaitedLocks;
use super::awaited_rows::AwaitedRows;
use super::backend::Backend;
use super::lock::{LockTag, Prepared, VirtualTransaction};
use super::prepared::PreparedIndex;
use super::snapshot::Snapshot;
use super::wait_graph::{Party, Queue, Root, TreeNode, WaitGraph};

/// Positions in one snapshot and its graph. Whoever asks hands in the same two that it was made of.
#[derive(Debug, Clone, Default)]
pub struct SnapshotIndex {
    backends: FxHashMap<i32, u32>,
    queues: FxHashMap<LockTag, u32>,
    nodes: FxHashMap<Party, u32>,
    roots: FxHashMap<Party, u32>,
    in_cycles: FxHashMap<Party, u32>,
    prepared: PreparedIndex,
    awaited: AwaitedRows,
    awaited_locks: AwaitedLocks,
}

impl SnapshotIndex {
    /// Notes where everything is; what it gives are positions in these two, and in no others.
    pub fn of(snapshot: &Snapshot, graph: &WaitGraph) -> Self {
        let awaited = AwaitedRows::of(snapshot, graph);
        Self {
            backends: positions(snapshot.backends.last_rows().iter().map(|backend| backend.pid)),
            queues: positions(graph.queues.iter().map(|queue| queue.tag)),
            nodes: positions(graph.tree.nodes.iter().map(|node| node.party)),
            roots: positions(graph.roots.iter().map(|root| root.party)),
            in_cycles: positions(graph.in_cycles.iter().map(|member| member.party)),
            prepared: PreparedIndex::of(snapshot),
            awaited_locks: AwaitedLocks::of(graph, &awaited),
            awaited,
        }
    }

    /// The backend with this process id.
    pub fn backend<'a>(&self, snapshot: &'a Snapshot, pid: i32) -> Option<&'a Backend> {
        snapshot.backends.last_rows().get(*self.backends.get(&pid)? as usize)
    }

    /// The prepared transaction behind a virtual transaction.
    pub fn prepared<'a>(&self, snapshot: &'a Snapshot, xact: VirtualTransaction) -> Option<&'a Prepared> {
        self.prepared.get(snapshot, xact)
    }

    /// Who waits for a lock; none where nobody does.
    pub fn queue<'a>(&self, graph: &'a WaitGraph, tag: &LockTag) -> Option<&'a Queue> {
        graph.queues.get(*self.queues.get(tag)? as usize)
    }

    /// The place of somebody in the forest; none for who neither waits nor is waited for.
    pub fn node<'a>(&self, graph: &'a WaitGraph, party: Party) -> Option<(usize, &'a TreeNode)> {
        let at = *self.nodes.get(&party)? as usize;
        Some((at, graph.tree.nodes.get(at)?))
    }

    /// What is known of a root blocker; none for everybody else.
    pub fn root<'a>(&self, graph: &'a WaitGraph, party: Party) -> Option<&'a Root> {
        graph.roots.get(*self.roots.get(&party)? as usize)
    }

    /// What ending it would come to, of a root and of whoever is part of a deadlock.
    pub fn ending<'a>(&self, graph: &'a WaitGraph, party: Party) -> Option<&'a Root> {
        let in_cycle = || graph.in_cycles.get(*self.in_cycles.get(&party)? as usize);
        self.root(graph, party).or_else(in_cycle)
    }

    /// The locks that sessions wait for, each once.
    pub fn awaited_locks(&self) -> &AwaitedLocks {
        &self.awaited_locks
    }

    /// What `waiter` waits for: of a transaction the row behind it, where that is known.
    pub fn awaited<'a>(&'a self, tag: &'a LockTag, waiter: i32) -> &'a LockTag {
        self.awaited.awaited(tag, waiter)
    }
}

/// Each key with its position; of several the last.
fn positions<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> FxHashMap<K, u32> {
    keys.enumerate().map(|(at, key)| (key, u32::try_from(at).unwrap_or(u32::MAX))).collect()
}
