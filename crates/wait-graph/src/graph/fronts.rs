//! Which groups wait behind which roots, and because of which of the roots' locks.

use rustc_hash::FxHashMap;

use super::index::Index;
use super::net::Net;
use super::{Party, Queue, Root};

/// Roots that block the same requests for the same locks, and the groups behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Front {
    /// The roots, ranked as in [`super::WaitGraph::roots`].
    pub roots: Vec<Party>,
    /// Every group behind them, once, with the queue of the roots' lock at which its chain begins; the first of several.
    pub behind: Vec<(Party, usize)>,
}

/// The fronts of all roots, in the order of the first root of each.
pub(super) fn fronts(queues: &[Queue], index: &Index, net: &Net, roots: &[Root]) -> Vec<Front> {
    let mut places: FxHashMap<&[usize], usize> = FxHashMap::default();
    let mut fronts: Vec<Front> = Vec::new();
    let mut seen = vec![usize::MAX; net.backward.len()];
    for root in roots {
        let Some(group) = index.number(root.party) else { continue };
        let number = fronts.len();
        let place = *places.entry(net.backward.of(group)).or_insert(number);
        match fronts.get_mut(place) {
            Some(front) => front.roots.push(root.party),
            None => fronts.push(Front {
                roots: vec![root.party],
                behind: behind(queues, index, net, group, &mut (number, &mut seen)),
            }),
        }
    }
    fronts
}

/// The groups behind a root. `seen` has the last search that reached each node, and the number of this search.
fn behind(
    queues: &[Queue],
    index: &Index,
    net: &Net,
    root: usize,
    (search, seen): &mut (usize, &mut [usize]),
) -> Vec<(Party, usize)> {
    let mut is_new = |node: usize| match seen.get_mut(node) {
        Some(last) if last != search => {
            *last = *search;
            true
        }
        _ => false,
    };
    is_new(root);
    let mut found = Vec::new();
    let mut go = |from: Vec<usize>, number: usize| {
        let mut todo: Vec<usize> = from.into_iter().filter(|node| is_new(*node)).collect();
        while let Some(node) = todo.pop() {
            if node < index.len() {
                found.push((index.party(node), number));
            }
            todo.extend(net.backward.of(node).iter().copied().filter(|next| is_new(*next)));
        }
    };
    for (number, modes) in index.holds(root) {
        let (Some(queue), Some(members)) = (queues.get(*number), index.members(*number)) else { continue };
        let waiting = members.waiters.iter().zip(&queue.waiters);
        let stopped = waiting.filter(|(_, waiter)| waiter.mode.conflicts_with(*modes));
        go(stopped.map(|(group, _)| *group).collect(), *number);
    }
    // A waiter without a blocker is about to be granted its lock.
    if let Some((number, _)) = index.waits(root).first() {
        go(net.backward.of(root).to_vec(), *number);
    }
    found
}
