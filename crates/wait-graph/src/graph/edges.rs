use rustc_hash::FxHashSet;

use super::index::Index;
use super::modes::Sweep;
use super::{Edge, EdgeKind, Holder, Queue, Waiter};
use crate::lock::LockModes;

/// Maximum number of listed holder edges: a thousand waiters of a lock that each of them also holds have a million.
const HOLDER_EDGES: usize = 200_000;

/// The holder edges (at most 200,000), at most `limit` queue edges, and the number of missing edges.
pub(super) fn all(queues: &[Queue], index: &Index, limit: usize) -> (Vec<Edge>, u64) {
    let mut edges = Vec::new();
    let (mut room, mut total) = (limit, 0_u64);
    let (mut of_holders, mut missing) = (0, 0_u64);
    for (number, queue) in queues.iter().enumerate() {
        let Some(members) = index.members(number) else { continue };
        let mut sweep = Sweep::default();
        for (position, (group, waiter)) in members.waiters.iter().zip(&queue.waiters).enumerate() {
            total += u64::from(sweep.pass(*group, LockModes::default(), waiter.mode));
            let start = edges.len();
            if of_holders < HOLDER_EDGES {
                holders(queue, waiter, &mut edges);
            } else {
                missing += u64::try_from(blocking(queue, waiter).count()).unwrap_or(u64::MAX);
            }
            let before = edges.len();
            of_holders += before - start;
            ahead(queue, position, room, &mut edges);
            room -= edges.len() - before;
        }
    }
    let shown = limit - room;
    (edges, missing + total.saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX)))
}

/// The edges of one group, holders first.
pub(super) fn of(queues: &[Queue], index: &Index, group: usize) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (number, position) in index.waits(group) {
        let Some(queue) = queues.get(*number) else { continue };
        if let Some(waiter) = queue.waiters.get(*position) {
            holders(queue, waiter, &mut edges);
        }
        ahead(queue, *position, usize::MAX, &mut edges);
    }
    edges.sort_by_key(|edge| edge.kind);
    edges
}

/// The groups with an edge to this one, each once.
pub(super) fn to(queues: &[Queue], index: &Index, group: usize) -> Vec<usize> {
    let stopped = |queue: usize, from: usize, modes: LockModes| {
        let members = index.members(queue).map_or(&[][..], |members| &members.waiters);
        let waiters = queues.get(queue).map_or(&[][..], |queue| &queue.waiters);
        let behind = members.iter().zip(waiters).skip(from);
        behind
            .filter(move |(other, waiter)| **other != group && waiter.mode.conflicts_with(modes))
            .map(|(other, _)| *other)
    };
    let held = index.holds(group).iter().flat_map(|(queue, modes)| stopped(*queue, 0, *modes));
    let awaited = index.waits(group).iter().filter_map(|(queue, position)| {
        let mode = queues.get(*queue)?.waiters.get(*position)?.mode;
        Some(stopped(*queue, position + 1, LockModes::of(mode)))
    });
    let mut seen = FxHashSet::default();
    held.chain(awaited.flatten()).filter(|behind| seen.insert(*behind)).collect()
}

/// Number of groups that block a group, which may wait in several queues.
pub(super) fn count_blockers(queues: &[Queue], index: &Index, group: usize) -> usize {
    of(queues, index, group).iter().map(|edge| edge.blocker).collect::<FxHashSet<_>>().len()
}

fn blocking<'a>(queue: &'a Queue, waiter: &'a Waiter) -> impl Iterator<Item = &'a Holder> {
    let blocks = |holder: &&Holder| holder.party != waiter.party && waiter.mode.conflicts_with(holder.modes);
    queue.holders.iter().filter(blocks)
}

fn holders(queue: &Queue, waiter: &Waiter, edges: &mut Vec<Edge>) {
    edges.extend(blocking(queue, waiter).map(|holder| Edge {
        waiter: waiter.party,
        blocker: holder.party,
        kind: EdgeKind::Holder,
        lock: waiter.lock,
        inferred: false,
    }));
}

/// At most `limit` edges to waiters ahead in the queue.
fn ahead(queue: &Queue, position: usize, limit: usize, edges: &mut Vec<Edge>) {
    let (Some(waiter), Some(before)) = (queue.waiters.get(position), queue.waiters.get(..position)) else {
        return;
    };
    if limit == 0 {
        return;
    }
    let mut seen = FxHashSet::default();
    let blocking = before
        .iter()
        .filter(|other| other.party != waiter.party && waiter.mode.conflicts_with(LockModes::of(other.mode)))
        .filter(|other| seen.insert(other.party));
    edges.extend(blocking.take(limit).map(|other| Edge {
        waiter: waiter.party,
        blocker: other.party,
        kind: EdgeKind::Queue,
        lock: waiter.lock,
        inferred: waiter.exact.is_none(),
    }));
}
