//! The graph as a forest.
//!
//! A waiter is shown under the blocker that has waited longest, a holder before a waiter ahead in the queue. A root
//! counts as waiting longest; of several roots the first in rank is taken, and of waiters of the same age the smallest
//! party. The order of the rows has no influence, so a waiter stays in place from one refresh to the next as long as
//! its blockers do.
//!
//! In a cycle the member with the longest wait is the top, and the others are below it along their edges.

use std::collections::VecDeque;

use super::index::{Index, Members};
use super::net::{Net, count, put};
use super::queue::{PerMode, stopped_by};
use super::reach::Components;
use super::{EdgeKind, Party, Queue, Root, Tree, TreeNode};
use crate::lock::{LockMode, LockModes};
use locktop_base::Timestamp;

pub(super) struct TreeInput<'a> {
    pub(super) queues: &'a [Queue],
    pub(super) index: &'a Index,
    pub(super) net: &'a Net,
    pub(super) blockers: &'a [u32],
    pub(super) roots: &'a [Root],
    pub(super) components: &'a Components,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    kind: EdgeKind,
    parent: usize,
    queue: usize,
    position: usize,
}

/// Sorts parents: roots in their order, then the longest wait.
type Rank = (usize, (bool, Option<Timestamp>, Party));

/// The best two of several groups: the second is for a waiter that is itself the best.
#[derive(Debug, Clone, Copy, Default)]
struct Best([Option<usize>; 2]);

impl Best {
    fn offer(&mut self, group: usize, ranks: &[Rank]) {
        let [first, second] = self.0;
        let beats = |other: Option<usize>| other.is_none_or(|other| ranks.get(group) < ranks.get(other));
        if first == Some(group) || second == Some(group) {
            return;
        }
        if beats(first) {
            self.0 = [Some(group), first];
        } else if beats(second) {
            self.0 = [first, Some(group)];
        }
    }

    fn except(self, group: usize) -> Option<usize> {
        let [first, second] = self.0;
        if first == Some(group) { second } else { first }
    }
}

/// Puts each waiting group below one blocker, and each group that does not wait at a top.
pub(super) fn build_tree(ground: &TreeInput<'_>) -> Tree {
    let TreeInput { index, components, .. } = ground;
    let mut root_ranks = vec![usize::MAX; index.len()];
    let numbers: Vec<usize> = ground.roots.iter().filter_map(|root| index.number(root.party)).collect();
    for (rank, group) in numbers.iter().enumerate() {
        put(&mut root_ranks, *group, rank);
    }
    let ranks: Vec<Rank> =
        root_ranks.iter().enumerate().map(|(group, rank)| (*rank, index.age(group))).collect();
    let mut links: Vec<Option<Link>> = vec![None; index.len()];
    for (number, queue) in ground.queues.iter().enumerate() {
        if let Some(members) = index.members(number) {
            link_queue(number, queue, members, &ranks, &mut links);
        }
    }
    let mut cycle_of = vec![None; index.len()];
    if !components.cycles.is_empty() {
        link_cycles(ground, &mut links, &mut cycle_of);
    }
    let mut tops: Vec<usize> = components.cycles.iter().filter_map(|cycle| cycle.first().copied()).collect();
    tops.extend(&numbers);
    let is_root = |group: &usize| root_ranks.get(*group).is_some_and(|rank| *rank != usize::MAX);
    let is_alone = |group: &usize| links.get(*group).is_some_and(Option::is_none);
    let mut alone: Vec<usize> = (0..index.len())
        .filter(|group| !index.waits(*group).is_empty() && is_alone(group) && !is_root(group))
        .filter(|group| cycle_of.get(*group) == Some(&None))
        .collect();
    alone.sort_by_key(|group| index.age(*group));
    tops.extend(alone);
    grow(ground, &links, &cycle_of, tops)
}

/// Finds the best parent for each waiter in a queue.
fn link_queue(number: usize, queue: &Queue, members: &Members, ranks: &[Rank], links: &mut [Option<Link>]) {
    let mut holders: PerMode<Best> = PerMode::default();
    for (group, holder) in members.holders.iter().zip(&queue.holders) {
        for mode in stopped_by(holder.modes).iter() {
            holders.slot(mode).offer(*group, ranks);
        }
    }
    let mut ahead: PerMode<Best> = PerMode::default();
    for (position, (group, waiter)) in members.waiters.iter().zip(&queue.waiters).enumerate() {
        let link =
            holders.get(waiter.mode).except(*group).map(|parent| (EdgeKind::Holder, parent)).or_else(|| {
                let ahead = waiter.mode.conflicts().iter().filter_map(|mode| ahead.get(mode).except(*group));
                ahead.min_by_key(|other| ranks.get(*other)).map(|parent| (EdgeKind::Queue, parent))
            });
        ahead.slot(waiter.mode).offer(*group, ranks);
        let (Some((kind, parent)), Some(place)) = (link, links.get_mut(*group)) else { continue };
        let is_better = place.is_none_or(|old| (kind, ranks.get(parent)) < (old.kind, ranks.get(old.parent)));
        if is_better {
            *place = Some(Link { kind, parent, queue: number, position });
        }
    }
}

/// Puts the members of each cycle below its top.
fn link_cycles(ground: &TreeInput<'_>, links: &mut [Option<Link>], cycle_of: &mut [Option<usize>]) {
    let component = &ground.components.of;
    // For each node, the group for which the search reached it.
    let mut from: Vec<Option<usize>> = vec![None; component.len()];
    for (number, cycle) in ground.components.cycles.iter().enumerate() {
        for group in cycle {
            put(cycle_of, *group, Some(number));
        }
        let Some(top) = cycle.first().copied() else { continue };
        put(links, top, None);
        put(&mut from, top, Some(top));
        let mut todo = VecDeque::from([top]);
        while let Some(node) = todo.pop_front() {
            let Some(Some(origin)) = from.get(node).copied() else { continue };
            for next in ground.net.backward.of(node) {
                let Some(place) = from.get_mut(*next) else { continue };
                if place.is_some() || component.get(*next) != component.get(top) {
                    continue;
                }
                let is_group = *next < ground.index.len();
                *place = Some(if is_group { *next } else { origin });
                if is_group {
                    put(links, *next, edge(ground, *next, origin));
                }
                todo.push_back(*next);
            }
        }
    }
}

/// The edge between two groups, holders first.
fn edge(ground: &TreeInput<'_>, group: usize, parent: usize) -> Option<Link> {
    let index = ground.index;
    let mode_at = |queue: usize, position: usize| -> Option<LockMode> {
        Some(ground.queues.get(queue)?.waiters.get(position)?.mode)
    };
    let mut best: Option<Link> = None;
    for (queue, position) in index.waits(group).iter().copied() {
        let Some(mode) = mode_at(queue, position) else { continue };
        let is_ahead = |(other_queue, other): &(usize, usize)| {
            *other_queue == queue
                && *other < position
                && mode_at(queue, *other).is_some_and(|other| mode.conflicts_with(LockModes::of(other)))
        };
        let kind = if mode.conflicts_with(index.held(parent, queue)) {
            EdgeKind::Holder
        } else if index.waits(parent).iter().any(is_ahead) {
            EdgeKind::Queue
        } else {
            continue;
        };
        if best.is_none_or(|best| kind < best.kind) {
            best = Some(Link { kind, parent, queue, position });
        }
    }
    best
}

/// Lays the nodes out, parents before their children.
fn grow(
    ground: &TreeInput<'_>,
    links: &[Option<Link>],
    cycle_of: &[Option<usize>],
    tops: Vec<usize>,
) -> Tree {
    let index = ground.index;
    let mut under: Vec<Vec<usize>> = vec![Vec::new(); index.len()];
    for (group, link) in links.iter().enumerate() {
        if let Some(children) = link.and_then(|link| under.get_mut(link.parent)) {
            children.push(group);
        }
    }
    let mut tree = Tree { nodes: Vec::with_capacity(index.len()), tops: Vec::new() };
    let mut todo: Vec<(usize, Option<usize>)> = tops.into_iter().rev().map(|top| (top, None)).collect();
    while let Some((group, parent)) = todo.pop() {
        let place = tree.nodes.len();
        let link = links.get(group).copied().flatten();
        tree.nodes.push(TreeNode {
            party: index.party(group),
            parent,
            children: Vec::new(),
            waits: link
                .map(|link| (link.queue, link.position))
                .or_else(|| longest_wait(ground.queues, index, group)),
            edge: link.map(|link| link.kind),
            more_blockers: ground
                .blockers
                .get(group)
                .map_or(0, |all| all.saturating_sub(u32::from(link.is_some()))),
            below: 0,
            cycle: cycle_of.get(group).copied().flatten(),
        });
        match parent {
            None => tree.tops.push(place),
            Some(parent) => {
                if let Some(parent) = tree.nodes.get_mut(parent) {
                    parent.children.push(place);
                }
            }
        }
        if let Some(mut children) = under.get_mut(group).map(std::mem::take) {
            children.sort_unstable_by_key(|child| index.age(*child));
            todo.extend(children.into_iter().rev().map(|child| (child, Some(place))));
        }
    }
    for place in (0..tree.nodes.len()).rev() {
        let Some((parent, below)) = tree.nodes.get(place).map(|node| (node.parent, node.below)) else {
            continue;
        };
        if let Some(parent) = parent.and_then(|parent| tree.nodes.get_mut(parent)) {
            parent.below = parent.below.saturating_add(below).saturating_add(count(1));
        }
    }
    tree
}

/// The queue and position of the group's longest wait.
pub(super) fn longest_wait(queues: &[Queue], index: &Index, group: usize) -> Option<(usize, usize)> {
    let age = |(queue, position): &(usize, usize)| {
        let start = queues.get(*queue).and_then(|queue| queue.waiters.get(*position))?.wait_start;
        Some((start.is_none(), start))
    };
    index.waits(group).iter().copied().min_by_key(age)
}
