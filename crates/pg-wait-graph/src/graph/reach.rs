//! The groups behind and above a group, and the roots.

use rustc_hash::FxHashMap;

use super::Root;
use super::above::AboveInput;
use super::frees::{EndedGroups, freed};
use super::index::Index;
use super::net::{Net, Search, count, put};
use super::release::{End, release};

/// Ranks the groups that block others and do not wait. `blockers` is the number of blockers of each group.
///
/// Roots that block the same requests for the same locks (500 sharers of one lock) have the same numbers, which are
/// computed once, unless a list of next waits makes a difference.
pub(super) fn roots(input: AboveInput<'_>, blockers: &[u32]) -> Vec<Root> {
    let AboveInput { net, lists, .. } = input;
    let mut walk = Walk { ground: input, search: Search::new(net.backward.len()), room: ROOM };
    let mut known: FxHashMap<&[usize], Root> = FxHashMap::default();
    let mut roots = Vec::new();
    for (group, _) in blockers.iter().enumerate().filter(|(_, blockers)| **blockers == 0) {
        let stops = net.backward.of(group);
        if stops.is_empty() {
            continue;
        }
        let root = match known.get(stops) {
            Some(root) => Root { party: input.index.party(group), ..root.clone() },
            None => walk.ending(group),
        };
        if root.blocked > 0 {
            roots.push(root.clone());
        }
        if lists.is_empty() {
            known.entry(stops).or_insert(root);
        }
    }
    roots.sort_by_key(|root| {
        (std::cmp::Reverse(root.blocked), root.longest_wait.is_none(), root.longest_wait, root.party)
    });
    roots
}

/// Maximum number of sessions behind roots, or behind members of cycles, for which the outcome is computed. Only
/// thousands of sessions that hold and request the same lock exceed it; the rest are reported as "may stay blocked".
const ROOM: usize = 300_000;

struct Walk<'a> {
    ground: AboveInput<'a>,
    search: Search,
    room: usize,
}

impl Walk<'_> {
    fn ending(&mut self, group: usize) -> Root {
        let AboveInput { index, net, .. } = self.ground;
        let found = self.search.from(group, &net.backward, index.len());
        let party = index.party(group);
        let blocked = count(found.len());
        let longest_wait = found.iter().filter_map(|behind| index.since(*behind)).min();
        let unknown = Root {
            party,
            blocked,
            frees: 0,
            in_turn: 0,
            still_blocked: 0,
            may_stay_blocked: blocked,
            others_must_end: None,
            longest_wait,
        };
        if self.room < found.len() {
            return unknown;
        }
        self.room -= found.len();
        let release = release(self.ground, &[party], &[group], End::Session);
        Root {
            frees: count(release.now.len()),
            in_turn: count(release.in_turn.len()),
            still_blocked: count(release.still.len()),
            may_stay_blocked: count(release.unsure.len()),
            others_must_end: release.others_must_end(),
            ..unknown
        }
    }
}

/// Number of members of a cycle for which the groups that follow in turn are computed: each takes a walk over the
/// graph.
const WALKED: usize = 32;

/// For a cycle with more members, the sessions that continue at once are not computed.
const COUNTED: usize = 1_000;

/// The effect of ending each member of the cycles. All members of a cycle have the same groups behind them.
pub(super) fn in_cycles(ground: AboveInput<'_>, cycles: &[Vec<usize>]) -> Vec<Root> {
    let mut walk = Walk { ground, search: Search::new(ground.net.backward.len()), room: ROOM };
    let mut members = Vec::new();
    for cycle in cycles {
        let Some(first) = cycle.first().copied() else { continue };
        let first_of = walk.ending(first);
        let mut member = |(place, group): (usize, &usize)| match place {
            0 => first_of.clone(),
            1..WALKED => walk.ending(*group),
            _ => {
                let now = || count(freed(ground.queues, ground.index, EndedGroups::whole(&[*group])).len());
                let frees = if cycle.len() <= COUNTED { now() } else { 0 };
                Root {
                    party: ground.index.party(*group),
                    frees,
                    in_turn: 0,
                    still_blocked: 0,
                    may_stay_blocked: first_of.blocked.saturating_sub(frees),
                    others_must_end: None,
                    ..first_of.clone()
                }
            }
        };
        let mut all: Vec<Root> = cycle.iter().enumerate().map(&mut member).collect();
        let longest_wait =
            all.iter().filter_map(|one| one.longest_wait).chain(ground.index.since(first)).min();
        for one in &mut all {
            one.longest_wait = longest_wait;
        }
        members.append(&mut all);
    }
    members
}

/// The strongly connected components of the net.
#[derive(Debug, Default)]
pub(super) struct Components {
    /// The component of each node.
    pub(super) of: Vec<usize>,
    /// The components with more than one group. The longest wait comes first, in each and among them.
    pub(super) cycles: Vec<Vec<usize>>,
}

const UNSEEN: usize = usize::MAX;

/// Tarjan's algorithm, with an explicit stack: a chain of waits may be too long for recursion.
struct Tarjan<'a> {
    net: &'a Net,
    /// The order in which the nodes were found.
    order: Vec<usize>,
    /// The earliest node that it leads back to.
    low: Vec<usize>,
    component: Vec<usize>,
    components: usize,
    found: usize,
    /// Nodes whose component is not known yet.
    open: Vec<usize>,
    /// `(node, successors already followed)`.
    path: Vec<(usize, usize)>,
}

pub(super) fn components(index: &Index, net: &Net) -> Components {
    let nodes = net.forward.len();
    let mut tarjan = Tarjan {
        net,
        order: vec![UNSEEN; nodes],
        low: vec![UNSEEN; nodes],
        component: vec![UNSEEN; nodes],
        components: 0,
        found: 0,
        open: Vec::new(),
        path: Vec::new(),
    };
    let mut cycles = Vec::new();
    for group in 0..index.len() {
        if get(&tarjan.order, group) == UNSEEN {
            tarjan.run(group, index.len(), &mut cycles);
        }
    }
    for cycle in &mut cycles {
        cycle.sort_by_key(|group| index.age(*group));
    }
    cycles.sort_by_key(|cycle| cycle.first().map(|group| index.age(*group)));
    Components { of: tarjan.component, cycles }
}

impl Tarjan<'_> {
    fn run(&mut self, start: usize, groups: usize, cycles: &mut Vec<Vec<usize>>) {
        self.enter(start);
        while let Some((node, followed)) = self.path.last_mut() {
            let node = *node;
            if let Some(next) = self.net.forward.of(node).get(*followed).copied() {
                *followed += 1;
                if get(&self.order, next) == UNSEEN {
                    self.enter(next);
                } else if get(&self.component, next) == UNSEEN {
                    self.lower(node, get(&self.order, next));
                }
                continue;
            }
            self.path.pop();
            if let Some((before, _)) = self.path.last() {
                self.lower(*before, get(&self.low, node));
            }
            if get(&self.low, node) == get(&self.order, node) {
                self.close(node, groups, cycles);
            }
        }
    }

    fn enter(&mut self, node: usize) {
        put(&mut self.order, node, self.found);
        put(&mut self.low, node, self.found);
        self.found += 1;
        self.open.push(node);
        self.path.push((node, 0));
    }

    fn lower(&mut self, node: usize, to: usize) {
        if let Some(low) = self.low.get_mut(node) {
            *low = to.min(*low);
        }
    }

    fn close(&mut self, last: usize, groups: usize, cycles: &mut Vec<Vec<usize>>) {
        let mut members = Vec::new();
        while let Some(node) = self.open.pop() {
            put(&mut self.component, node, self.components);
            if node < groups {
                members.push(node);
            }
            if node == last {
                break;
            }
        }
        self.components += 1;
        if members.len() > 1 {
            cycles.push(members);
        }
    }
}

fn get(values: &[usize], at: usize) -> usize {
    values.get(at).copied().unwrap_or(UNSEEN)
}
