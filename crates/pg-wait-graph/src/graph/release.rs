//! The effect of ending some groups on those behind them: which continue at once, which in turn, and which stay
//! blocked.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Party;
use super::above::{Above, AboveInput, has_cycle};
use super::frees::{EndedGroups, Stays, freed};
use super::lists::List;
use super::net::{Search, count, put};
use super::queue::{PerMode, stopped_by};
use crate::lock::{LockMode, LockModes};

/// How groups end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Their sessions end: all their locks are released.
    Session,
    /// Their transactions end, as by cancelling a statement that is a transaction of its own. An advisory lock may belong
    /// to the session and stay.
    Transaction,
    /// Their statements end, within transaction blocks. After a savepoint the block keeps the locks taken before it.
    Statement,
}

/// The effect of ending some parties. Each party behind them is in exactly one of the first four lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Release {
    /// Parties that continue at once, in the order in which the server wakes them.
    pub now: Vec<Party>,
    /// Parties that continue after those before them have finished their transactions, longest wait first. If none continues at
    /// once for certain, one of these does.
    pub in_turn: Vec<Party>,
    /// Parties that stay blocked by others, longest wait first.
    pub still: Vec<Party>,
    /// Parties that may stay blocked: `pg_locks` does not show their next wait.
    pub unsure: Vec<Party>,
    /// Other parties that must end before all of `still` continue, sorted. Empty if that is not known: in a deadlock, and
    /// behind a standby.
    pub others: Vec<Party>,
    /// More than `others` may have to end before all of `still` continue: a party above them goes through a list.
    pub more: bool,
    /// Other parties that may have to end before all of `unsure` continue, sorted; empty if that is not known.
    pub possible: Vec<Party>,
    /// Some of `still` or `unsure` would wait for a synchronous standby.
    pub standby: bool,
}

impl Release {
    /// Number of other parties that must end before all that stay blocked continue; `None` if that is not known.
    #[must_use]
    pub fn others_must_end(&self) -> Option<u32> {
        let is_known = self.still.is_empty() || !self.others.is_empty() && !self.more;
        (is_known && self.unsure.is_empty() && !self.standby).then(|| count(self.others.len()))
    }
}

/// `parties` end; `ended` has the index numbers of those that are in the index, ascending.
pub(super) fn release(input: AboveInput<'_>, parties: &[Party], ended: &[usize], end: End) -> Release {
    let AboveInput { queues, index, net, lists } = input;
    let mut behind = Search::new(net.backward.len()).beyond(ended, &net.backward, index.len());
    if behind.is_empty() {
        return Release::default();
    }
    // A waiter without a blocker gets its lock anyway.
    let is_behind: FxHashSet<usize> = behind.iter().copied().collect();
    behind.sort_unstable_by_key(|group| index.age(*group));
    let stays = match end {
        End::Session => Stays::Nothing,
        End::Transaction => Stays::Advisory,
        End::Statement => Stays::All,
    };
    let parties: FxHashSet<Party> = parties.iter().copied().collect();
    let sure = Fixpoint::new(input, &parties, ended, stays, false).run();
    let differs = end != End::Session || !lists.is_empty();
    let hope = differs.then(|| Fixpoint::new(input, &parties, ended, Stays::Nothing, true).run());
    let is = |set: &[bool], group: usize| set.get(group).copied().unwrap_or_default();
    let hoped = hope.as_ref().unwrap_or(&sure);
    let direct = freed(queues, index, EndedGroups { groups: ended, stays });
    let needs_only =
        |list: &List| list.all().all(|party| parties.contains(party)) && !list.is_open() && !list.queue;
    let now: Vec<usize> = direct
        .into_iter()
        .filter(|group| {
            is_behind.contains(group) && is(&sure, *group) && lists.of(*group).is_none_or(needs_only)
        })
        .collect();
    let at_once: FxHashSet<usize> = now.iter().copied().collect();
    let mut release = Release::default();
    let named = |groups: &[usize]| groups.iter().map(|group| index.party(*group)).collect::<Vec<_>>();
    let (mut in_turn, mut still, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
    for group in behind.into_iter().filter(|group| !at_once.contains(group)) {
        match (is(&sure, group), is(hoped, group)) {
            (true, _) => in_turn.push(group),
            (false, true) => unsure.push(group),
            (false, false) => still.push(group),
        }
    }
    let above = Above { input, parties: &parties, ended };
    let certain = above.of(&still, hoped, false);
    let perhaps = above.of(&unsure, &sure, true);
    let awaits_standby = ended.iter().any(|group| lists.awaits_standby(*group));
    // If they may wait only for each other, one of them continues first, and the others after it.
    let is_closed = end == End::Session && perhaps.is_nothing() && !awaits_standby;
    if is_closed && !unsure.is_empty() && !has_cycle(input, &unsure) {
        in_turn.append(&mut unsure);
        in_turn.sort_unstable_by_key(|group| index.age(*group));
    }
    (release.others, release.more) = (certain.parties, certain.more);
    release.possible =
        perhaps.parties.into_iter().filter(|party| release.others.binary_search(party).is_err()).collect();
    let ends_stuck = !unsure.is_empty() && awaits_standby;
    release.standby = certain.standby || perhaps.standby || ends_stuck;
    (release.now, release.in_turn) = (named(&now), named(&in_turn));
    (release.still, release.unsure) = (named(&still), named(&unsure));
    release
}

/// The requests that were passed over, by mode: the group, and whether there is another one.
#[derive(Default)]
struct Ahead(PerMode<(Option<usize>, bool)>);

impl Ahead {
    fn add(&mut self, group: usize, mode: LockMode) {
        let (first, has_more) = self.0.slot(mode);
        *has_more |= first.is_some_and(|first| first != group);
        first.get_or_insert(group);
    }

    /// Whether a request of another group conflicts.
    fn stops(&self, group: usize, mode: LockMode) -> bool {
        mode.conflicts().iter().any(|mode| {
            let (first, has_more) = self.0.get(mode);
            has_more || first.is_some_and(|first| first != group)
        })
    }

    /// Whether each of these requests conflicts with one of any group.
    fn stops_all(&self, requests: LockModes) -> bool {
        requests.iter().all(|mode| mode.conflicts().iter().any(|mode| self.0.get(mode).1))
    }
}

/// A queue after some of its groups ended or were released.
struct Touched {
    /// Number of groups that hold the lock and block requests for each mode.
    stopping: PerMode<u32>,
    /// No waiter is left before this position. Without it, releasing the waiters one by one takes quadratic time.
    first: usize,
}

/// Finds the groups that are released if the ending ones end and each released group finishes: the smallest set whose
/// members wait only for members and for the ending ones.
struct Fixpoint<'a> {
    ground: AboveInput<'a>,
    parties: &'a FxHashSet<Party>,
    ended: &'a [usize],
    stays: Stays,
    /// Whether possible blockers are assumed not to block.
    hopes: bool,
    /// Whether released groups finish their transactions: not if each commit waits for a standby.
    finish: bool,
    released: Vec<bool>,
    touched: FxHashMap<usize, Touched>,
    /// Finished waits of groups that have other waits.
    passed: FxHashSet<(usize, usize)>,
    todo: Vec<usize>,
    /// Queues with a waiter that is blocked by groups outside the queue.
    deferred: Vec<usize>,
}

impl<'a> Fixpoint<'a> {
    fn new(
        ground: AboveInput<'a>,
        parties: &'a FxHashSet<Party>,
        ended: &'a [usize],
        stays: Stays,
        hopes: bool,
    ) -> Self {
        let finish = hopes || !ended.iter().any(|group| ground.lists.awaits_standby(*group));
        Self {
            ground,
            parties,
            ended,
            stays,
            hopes,
            finish,
            released: vec![false; ground.index.len()],
            touched: FxHashMap::default(),
            passed: FxHashSet::default(),
            todo: ground.index.clear.clone(),
            deferred: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<bool> {
        for group in self.ended {
            self.leave(*group, self.stays);
        }
        let mut before = None;
        loop {
            while let Some(queue) = self.todo.pop() {
                self.walk(queue);
            }
            let released = self.released.iter().filter(|released| **released).count();
            if before.replace(released) == Some(released) {
                return self.released;
            }
            // Another round, as long as each releases a group.
            self.todo.append(&mut self.deferred);
            self.todo.sort_unstable();
            self.todo.dedup();
        }
    }

    /// Removes a group from its queues, with the locks that it holds.
    fn leave(&mut self, group: usize, stays: Stays) {
        let index = self.ground.index;
        for (queue, modes) in index.holds(group) {
            if !self.ground.queues.get(*queue).is_some_and(|queue| stays.releases(queue)) {
                continue;
            }
            let stopping = &mut self.touched(*queue).stopping;
            for mode in stopped_by(*modes).iter() {
                let slot = stopping.slot(mode);
                *slot = slot.saturating_sub(1);
            }
            self.todo.push(*queue);
        }
        self.todo.extend(index.waits(group).iter().map(|(queue, _)| *queue));
    }

    fn touched(&mut self, queue: usize) -> &mut Touched {
        let index = self.ground.index;
        let all = || index.members(queue).map(|members| members.stopping).unwrap_or_default();
        self.touched.entry(queue).or_insert_with(|| Touched { stopping: all(), first: 0 })
    }

    fn walk(&mut self, number: usize) {
        let AboveInput { queues, index, .. } = self.ground;
        let (Some(queue), Some(members)) = (queues.get(number), index.members(number)) else { return };
        let mut first = self.touched(number).first;
        while members.waiters.get(first).is_some_and(|group| self.is_away(*group)) {
            first += 1;
        }
        self.touched(number).first = first;
        let mut ahead = Ahead::default();
        let waiters = members.waiters.iter().zip(&queue.waiters).enumerate().skip(first);
        for (position, (group, waiter)) in waiters {
            if self.is_away(*group) {
                continue;
            }
            let own = u32::from(waiter.mode.conflicts_with(index.held(*group, number)));
            let is_clear =
                !ahead.stops(*group, waiter.mode) && self.touched(number).stopping.get(waiter.mode) == own;
            if is_clear && self.passes(*group, (number, position)) {
                put(&mut self.released, *group, true);
                if self.finish {
                    self.leave(*group, Stays::Nothing);
                    continue;
                }
            }
            ahead.add(*group, waiter.mode);
            if ahead.stops_all(members.requests) {
                break;
            }
        }
    }

    /// Whether a group no longer waits in any queue of the graph.
    fn is_away(&self, group: usize) -> bool {
        let is_released = self.released.get(group).copied().unwrap_or_default();
        self.ended.binary_search(&group).is_ok() || is_released && self.finish
    }

    /// Whether this was the last wait of the group.
    fn passes(&mut self, group: usize, wait: (usize, usize)) -> bool {
        let waits = self.ground.index.waits(group);
        if waits.len() > 1 {
            if self.passed.insert(wait) {
                // Another wait may be over too, although its queue has not changed.
                self.todo.extend(waits.iter().map(|(queue, _)| *queue).filter(|queue| *queue != wait.0));
            }
            if !waits.iter().all(|wait| self.passed.contains(wait)) {
                return false;
            }
        }
        let Some(list) = self.ground.lists.of(group) else { return true };
        let ends = |party: &Party| {
            let group = self.ground.index.number(*party);
            self.parties.contains(party)
                || self.finish && group.is_some_and(|group| self.released.get(group) == Some(&true))
        };
        let passes = !list.standby
            && list.must.iter().all(ends)
            && (self.hopes || !list.unknown && !list.queue && list.may.iter().all(ends));
        if !passes {
            self.deferred.push(wait.0);
        }
        passes
    }
}
