//! Who is behind a group, who is above it, and which groups are roots.

use rustc_hash::FxHashMap;

use super::Root;
use super::frees::{Gone, freed};
use super::release::{End, Ground, release};
use super::search::{Search, count};

/// Ranks the groups that block others and wait for nobody. `blockers` is how many block each group.
///
/// Roots that stop the same requests of the same locks (500 sharers of one lock) have the same numbers, which are then computed once,
/// unless a list of what is waited for next makes a difference.
pub(super) fn roots(ground: Ground<'_>, blockers: &[u32]) -> Vec<Root> {
    let Ground { net, lists, .. } = ground;
    let mut walk = Walk { ground, search: Search::new(net.backward.len()), room: ROOM };
    let mut known: FxHashMap<&[usize], Root> = FxHashMap::default();
    let mut roots = Vec::new();
    for (group, _) in blockers.iter().enumerate().filter(|(_, blockers)| **blockers == 0) {
        let stops = net.backward.of(group);
        if stops.is_empty() {
            continue;
        }
        let root = match known.get(stops) {
            Some(root) => Root { party: ground.index.party(group), ..root.clone() },
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

/// The most sessions behind roots, or behind members of cycles, of which it is worked out whether they continue. Only thousands of
/// sessions that hold and request the same lock exceed it; the rest are reported as "may stay blocked".
const ROOM: usize = 300_000;

struct Walk<'a> {
    ground: Ground<'a>,
    search: Search,
    room: usize,
}

impl Walk<'_> {
    /// The effect of ending a group.
    fn ending(&mut self, group: usize) -> Root {
        let Ground { index, net, .. } = self.ground;
        let found = self.search.from(group, &net.backward, index.len());
        let party = index.party(group);
        let blocked = count(found.len());
        let longest_wait = found.iter().filter_map(|behind| index.since(*behind)).min();
        if self.room < found.len() {
            return Root {
                party,
                blocked,
                frees: 0,
                in_turn: 0,
                still_blocked: 0,
                may_stay_blocked: blocked,
                others_must_end: None,
                longest_wait,
            };
        }
        self.room -= found.len();
        let release = release(self.ground, &[party], &[group], End::Session);
        Root {
            party,
            blocked,
            frees: count(release.now.len()),
            in_turn: count(release.in_turn.len()),
            still_blocked: count(release.still.len()),
            may_stay_blocked: count(release.unsure.len()),
            others_must_end: release.others_must_end(),
            longest_wait,
        }
    }
}

/// Members of a cycle of which it is worked out who follows in turn: that takes a walk over the graph for each.
const WALKED: usize = 32;

/// In a cycle of more members it is not worked out which sessions continue at once.
const COUNTED: usize = 1_000;

/// What ending each member of the cycles would come to. All of a cycle have the same behind them.
pub(super) fn in_cycles(ground: Ground<'_>, cycles: &[Vec<usize>]) -> Vec<Root> {
    let mut walk = Walk { ground, search: Search::new(ground.net.backward.len()), room: ROOM };
    let mut members = Vec::new();
    for cycle in cycles {
        let Some(first) = cycle.first().copied() else { continue };
        let first_of = walk.ending(first);
        let mut member = |(place, group): (usize, &usize)| match place {
            0 => first_of.clone(),
            1..WALKED => walk.ending(*group),
            _ => {
                let now = || count(freed(ground.queues, ground.index, Gone::whole(&[*group])).len());
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
