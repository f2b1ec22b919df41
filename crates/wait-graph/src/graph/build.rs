use rustc_hash::FxHashSet;

use super::index::Index;
use super::leaders::Leaders;
use super::lists::Lists;
use super::modes::Sweep;
use super::net::{Net, count};
use super::queue::{Draft, Entry, infer};
use super::reach::{in_cycles, roots};
use super::release::Ground;
use super::rows::{Rows, awaited};
use super::{Holder, Input, Queue, WaitGraph, Waiter, cycles, edges, refine, tree};
use crate::lock::LockModes;

pub(super) fn build(input: Input<'_>) -> WaitGraph {
    let rows = awaited(input.locks);
    if rows.is_empty() {
        return WaitGraph::default();
    }
    let leaders = Leaders::new(input, &rows);
    let mut index = Index::default();
    let mut drafts: Vec<Draft> = rows
        .iter()
        .enumerate()
        .map(|(number, rows)| draft(input, rows, number, &leaders, &mut index))
        .collect();
    refine::refine(&mut drafts, &index, input.answers);
    let queues: Vec<Queue> = drafts
        .into_iter()
        .map(|Draft { mut queue, holders, entries }| {
            let waiters;
            (waiters, queue.waiters) = entries.into_iter().map(|entry| (entry.group, entry.waiter)).unzip();
            index.add_queue(&queue, holders, waiters);
            queue
        })
        .collect();
    let blockers = count_blockers(&queues, &mut index);
    let net = Net::new(&queues, &index);
    let lists = Lists::new(input, &queues, &index, &leaders);
    let ground = Ground { queues: &queues, index: &index, net: &net, lists: &lists };
    let roots = roots(ground, &blockers);
    let components = cycles::components(&index, &net);
    let tree = tree::plant(&tree::Ground {
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
    WaitGraph { queues, roots, cycles, in_cycles, tree, waiting, index, net, lists }
}

/// The holders of a lock, and its queue in the inferred order.
fn draft(input: Input<'_>, rows: &Rows, number: usize, leaders: &Leaders, index: &mut Index) -> Draft {
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
    Draft { queue, holders, entries: infer(entries) }
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
            if let Some(count) = counts.get_mut(*group) {
                *count = blockers;
            }
        }
    }
    index.clear = clear;
    for (group, counted) in counts.iter_mut().enumerate() {
        if index.waits(group).len() > 1 {
            *counted = count(edges::count_blockers(queues, index, group));
        }
    }
    counts
}
