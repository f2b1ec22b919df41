use std::sync::OnceLock;

use rustc_hash::FxHashSet;

use super::above::AboveInput;
use super::fronts::Leaders;
use super::index::{Index, Rows, awaited};
use super::lists::Lists;
use super::net::{Net, count, put};
use super::queue::{Entry, QueueDraft, Sweep, infer};
use super::reach::{in_cycles, roots};
use super::{Edge, EdgeKind, Holder, Input, Queue, WaitGraph, Waiter, reach, refine, tree};
use crate::lock::LockModes;

pub(super) fn build(input: Input<'_>) -> WaitGraph {
    let rows = awaited(input.locks);
    if rows.is_empty() {
        return WaitGraph::default();
    }
    let leaders = Leaders::new(input, &rows);
    let mut index = Index::default();
    let mut drafts: Vec<QueueDraft> = rows
        .iter()
        .enumerate()
        .map(|(number, rows)| draft_queue(input, rows, number, &leaders, &mut index))
        .collect();
    refine::refine(&mut drafts, &index, input.answers);
    let queues: Vec<Queue> = drafts
        .into_iter()
        .map(|QueueDraft { mut queue, holders, entries }| {
            let waiters;
            (waiters, queue.waiters) = entries.into_iter().map(|entry| (entry.group, entry.waiter)).unzip();
            index.add_queue(&queue, holders, waiters);
            queue
        })
        .collect();
    let blockers = count_blockers(&queues, &mut index);
    let net = Net::new(&queues, &index);
    let lists = Lists::new(input, &queues, &index, &leaders);
    let ground = AboveInput { queues: &queues, index: &index, net: &net, lists: &lists };
    let roots = roots(ground, &blockers);
    let components = reach::components(&index, &net);
    let tree = tree::build_tree(&tree::TreeInput {
        queues: &queues,
        index: &index,
        net: &net,
        blockers: &blockers,
        roots: &roots,
        components: &components,
    });
    let in_cycles = in_cycles(ground, &components.cycles);
    let parties = |cycle: &Vec<usize>| cycle.iter().map(|group| index.party(*group)).collect();
    let cycles = components.cycles.iter().map(parties).collect();
    let waiting = count((0..index.len()).filter(|group| !index.waits(*group).is_empty()).count());
    let blocks = vec![OnceLock::new(); index.len()];
    WaitGraph { queues, roots, cycles, in_cycles, tree, waiting, index, net, lists, blocks }
}

/// The holders of a lock, and its queue in the inferred order.
fn draft_queue(
    input: Input<'_>,
    rows: &Rows,
    number: usize,
    leaders: &Leaders,
    index: &mut Index,
) -> QueueDraft {
    let mut holders = Vec::new();
    for lock in rows.granted.iter().filter_map(|row| input.locks.get(*row)) {
        let group = index.intern(leaders.party(lock));
        if index.hold(group, number, LockModes::of(lock.mode)) {
            holders.push(group);
        }
    }
    holders.sort_unstable_by_key(|group| index.party(*group));
    let held =
        holders.iter().map(|group| Holder { party: index.party(*group), modes: index.held(*group, number) });
    let queue = Queue { tag: rows.tag, holders: held.collect(), waiters: Vec::new() };
    let mut seen = FxHashSet::default();
    let mut entries = Vec::with_capacity(rows.waiting.len());
    for row in &rows.waiting {
        let Some(lock) = input.locks.get(*row) else { continue };
        let process = (lock.pid, lock.pid.is_none().then_some(lock.virtualtransaction));
        if !seen.insert(process) {
            continue;
        }
        let party = leaders.party(lock);
        let group = index.intern(party);
        let waiter = Waiter {
            party,
            pid: lock.pid.unwrap_or_default(),
            mode: lock.mode,
            wait_start: lock.wait_start,
            lock: *row,
            exact: None,
        };
        entries.push(Entry { group, own: index.held(group, number), waiter });
    }
    QueueDraft { queue, holders, entries: infer(entries) }
}

/// For each group, the number of groups that it waits for.
fn count_blockers(queues: &[Queue], index: &mut Index) -> Vec<u32> {
    let mut counts = vec![0; index.len()];
    let mut clear = Vec::new();
    for (number, queue) in queues.iter().enumerate() {
        let Some(members) = index.members(number) else { continue };
        let mut sweep = Sweep::with_holders(members.stopping);
        for (group, waiter) in members.waiters.iter().zip(&queue.waiters) {
            let blockers = sweep.pass(*group, index.held(*group, number), waiter.mode);
            if blockers == 0 && clear.last() != Some(&number) {
                clear.push(number);
            }
            put(&mut counts, *group, blockers);
        }
    }
    index.clear = clear;
    for (group, counted) in counts.iter_mut().enumerate() {
        if index.waits(group).len() > 1 {
            *counted = count(blockers_of(queues, index, group));
        }
    }
    counts
}

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
fn blockers_of(queues: &[Queue], index: &Index, group: usize) -> usize {
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
