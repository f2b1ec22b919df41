//! The groups that must, or may have to, end before others continue.

use rustc_hash::FxHashSet;

use super::index::Index;
use super::lists::{List, Lists};
use super::net::{Net, Search};
use super::{Party, Queue};

#[derive(Clone, Copy)]
pub(super) struct AboveInput<'a> {
    pub(super) queues: &'a [Queue],
    pub(super) index: &'a Index,
    pub(super) net: &'a Net,
    pub(super) lists: &'a Lists,
}

/// The parties above those that stay blocked.
pub(super) struct Above<'a> {
    pub(super) input: AboveInput<'a>,
    pub(super) parties: &'a FxHashSet<Party>,
    pub(super) ended: &'a [usize],
}

#[derive(Default)]
pub(super) struct Awaited {
    /// Those that wait for no other session, sorted.
    pub(super) parties: Vec<Party>,
    /// Whether there are other groups in between.
    others: bool,
    pub(super) standby: bool,
    /// There may be more.
    pub(super) more: bool,
}

impl Awaited {
    /// Whether no other group is awaited, as far as can be known.
    pub(super) fn is_nothing(&self) -> bool {
        self.parties.is_empty() && !self.others && !self.more && !self.standby
    }
}

impl Above<'_> {
    /// With `may`, possible waits count too.
    pub(super) fn of(&self, groups: &[usize], released: &[bool], may: bool) -> Awaited {
        let AboveInput { index, net, lists, .. } = self.input;
        let mut seen: FxHashSet<usize> = groups.iter().copied().collect();
        let mut todo: Vec<usize> = groups.to_vec();
        let (mut found, mut awaited) = (FxHashSet::default(), Awaited::default());
        let mut queues = FxHashSet::default();
        let is_left = |party: &Party| {
            let is_released = |group| released.get(group) == Some(&true);
            !self.parties.contains(party) && !index.number(*party).is_some_and(is_released)
        };
        let mut reach = |node: usize, todo: &mut Vec<usize>| {
            let is_away = self.ended.binary_search(&node).is_ok() || released.get(node) == Some(&true);
            let is_new = !is_away && seen.insert(node);
            if is_new {
                todo.push(node);
            }
            is_new && node < index.len()
        };
        while let Some(node) = todo.pop() {
            if node < index.len() && index.waits(node).is_empty() {
                found.insert(index.party(node));
            }
            for next in net.forward.of(node) {
                awaited.others |= reach(*next, &mut todo);
            }
            let Some(list) = lists.of(node).filter(|_| node < index.len()) else { continue };
            for next in if may { in_queue(self.input, node, &mut queues) } else { Vec::new() } {
                awaited.others |= reach(next, &mut todo);
            }
            awaited.standby |= list.standby;
            awaited.more |= list.unknown || !may && (list.queue || list.may.iter().any(is_left));
            for party in list.must.iter().chain(list.may.iter().filter(|_| may)) {
                match index.number(*party) {
                    _ if self.parties.contains(party) => {}
                    Some(group) => awaited.others |= reach(group, &mut todo),
                    None => _ = found.insert(*party),
                }
            }
        }
        awaited.parties = found.into_iter().collect();
        awaited.parties.sort_unstable();
        awaited
    }
}

/// Among more groups than that, a cycle is assumed.
const SEARCHED: usize = 1_000;

/// Whether a group may wait for one that waits for it: the server would end one of them as a deadlock.
pub(super) fn has_cycle(ground: AboveInput<'_>, groups: &[usize]) -> bool {
    let AboveInput { index, net, lists, .. } = ground;
    let is_awaited = |group: usize| {
        if lists.of(group).is_none() || net.backward.of(group).is_empty() {
            return false;
        }
        let mut behind = Search::new(net.backward.len()).beyond(&[group], &net.backward, index.len());
        behind.sort_unstable();
        let (mut seen, mut queues) = (FxHashSet::default(), FxHashSet::default());
        let mut todo = vec![group];
        while let Some(node) = todo.pop() {
            if behind.binary_search(&node).is_ok() {
                return true;
            }
            let listed = lists.of(node).into_iter().flat_map(List::all);
            let next =
                listed.filter_map(|party| index.number(*party)).chain(in_queue(ground, node, &mut queues));
            todo.extend(next.chain(net.forward.of(node).iter().copied()).filter(|next| seen.insert(*next)));
        }
        false
    };
    groups.len() > SEARCHED || groups.iter().any(|group| is_awaited(*group))
}

/// The waiters in the queues of a group that may wait for any of them; of each queue once.
fn in_queue(ground: AboveInput<'_>, group: usize, queues: &mut FxHashSet<usize>) -> Vec<usize> {
    let AboveInput { index, lists, .. } = ground;
    if !lists.of(group).is_some_and(|list| list.queue) {
        return Vec::new();
    }
    let own = index.waits(group).iter().map(|(queue, _)| *queue).filter(|queue| queues.insert(*queue));
    own.filter_map(|queue| index.members(queue)).flat_map(|members| members.waiters.iter().copied()).collect()
}
