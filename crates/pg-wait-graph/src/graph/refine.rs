//! Uses the server's answers for some of the waiters.
//!
//! An answer is a set, without an order, and a little older than the scan. It is accepted if all of it can be true of
//! the scan; then the queue is put into an order that agrees with it. So the order alone determines which waiter is
//! ahead of which, inferred or confirmed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::index::Index;
use super::net::put;
use super::queue::{Entry, QueueDraft};
use super::{Answer, Party};
use crate::lock::LockModes;

/// An answer about the waiter at a position.
#[derive(Debug)]
struct Claim {
    at: usize,
    /// The groups it names, each once.
    named: Vec<usize>,
    /// Number of holders among them.
    holders: usize,
}

/// A set of groups that is cleared at no cost.
struct Marks {
    round: u32,
    marks: Vec<u32>,
}

impl Marks {
    fn new(groups: usize) -> Self {
        Self { round: 0, marks: vec![0; groups] }
    }

    fn clear(&mut self) {
        self.round += 1;
    }

    /// True if it was not in the set.
    fn add(&mut self, group: usize) -> bool {
        let round = self.round;
        self.marks.get_mut(group).is_some_and(|mark| std::mem::replace(mark, round) != round)
    }

    fn has(&self, group: usize) -> bool {
        self.marks.get(group) == Some(&self.round)
    }
}

/// Orders each queue as far as the answers allow, and marks the waiters whose answer was accepted.
pub(super) fn refine(drafts: &mut [QueueDraft], index: &Index, answers: &[Answer]) {
    if answers.is_empty() {
        return;
    }
    let mut asked: FxHashMap<i32, &Answer> = FxHashMap::default();
    let mut disputed: FxHashSet<i32> = FxHashSet::default();
    for answer in answers {
        if asked.insert(answer.waiter, answer).is_some_and(|other| other != answer) {
            disputed.insert(answer.waiter);
        }
    }
    asked.retain(|pid, _| !disputed.contains(pid));
    // An answer is about all waiting processes of a group together. If there are several, it does not show which of them
    // is ahead of which waiter.
    let mut waits = vec![0_u32; index.len()];
    for entry in drafts.iter().flat_map(|draft| &draft.entries) {
        if let Some(count) = waits.get_mut(entry.group) {
            *count += 1;
        }
    }
    let (mut marks, mut counted) = (Marks::new(index.len()), Marks::new(index.len()));
    for draft in drafts {
        let mut agreed = true;
        let mut claims = Vec::new();
        for (at, entry) in draft.entries.iter().enumerate() {
            let single = waits.get(entry.group) == Some(&1);
            let answer = asked.get(&entry.waiter.pid).filter(|answer| single && is_current(answer, entry));
            if let Some(claim) = answer.and_then(|answer| claim_of(answer, draft, at, index, &mut marks)) {
                agreed &= agrees(&claim, &draft.entries, &marks, &mut counted);
                claims.push(claim);
            }
        }
        if !agreed {
            claims = settle(draft, claims, index, &waits);
        }
        for Claim { at, named, .. } in claims {
            if let Some(entry) = draft.entries.get_mut(at) {
                entry.waiter.exact = Some(named.into_iter().map(|group| index.party(group)).collect());
            }
        }
    }
}

/// Whether the answer is about the wait in the scan. A wait without a start may be another one.
fn is_current(answer: &Answer, entry: &Entry) -> bool {
    entry.waiter.wait_start.is_some() && answer.wait_start == entry.waiter.wait_start
}

/// The groups that an answer names, if its holders are those of the scan. Marks them, too.
fn claim_of(
    answer: &Answer,
    draft: &QueueDraft,
    at: usize,
    index: &Index,
    marks: &mut Marks,
) -> Option<Claim> {
    let entry = draft.entries.get(at)?;
    marks.clear();
    let mut named = Vec::new();
    let mut prepared = false;
    for pid in &answer.blockers {
        if *pid == 0 {
            prepared = true;
        } else {
            let group = index.number(Party::Backend(*pid))?;
            if marks.add(group) {
                named.push(group);
            }
        }
    }
    if marks.has(entry.group) {
        return None;
    }
    let mut holders = 0;
    let mut prepared_holder = false;
    for (group, holder) in draft.holders.iter().zip(&draft.queue.holders) {
        if *group == entry.group || !entry.waiter.mode.conflicts_with(holder.modes) {
            continue;
        }
        holders += 1;
        match holder.party {
            Party::Backend(_) if !marks.has(*group) => return None,
            Party::Backend(_) => {}
            Party::Prepared(_) => {
                prepared_holder = true;
                marks.add(*group);
                named.push(*group);
            }
        }
    }
    (prepared == prepared_holder).then_some(Claim { at, named, holders })
}

/// Whether `other`, in the same queue, blocks `entry` if and only if it is ahead.
fn is_contender(entry: &Entry, other: &Entry) -> bool {
    other.group != entry.group
        && entry.waiter.mode.conflicts_with(LockModes::of(other.waiter.mode))
        && !entry.waiter.mode.conflicts_with(other.own)
}

/// Whether the claim names exactly the waiters ahead in this order. Its groups are marked.
fn agrees(claim: &Claim, entries: &[Entry], marks: &Marks, counted: &mut Marks) -> bool {
    let (Some(entry), Some(ahead)) = (entries.get(claim.at), entries.get(..claim.at)) else { return false };
    counted.clear();
    let mut distinct = 0;
    for other in ahead.iter().filter(|other| is_contender(entry, other)) {
        if !marks.has(other.group) {
            return false;
        }
        distinct += usize::from(counted.add(other.group));
    }
    claim.holders + distinct == claim.named.len()
}

struct Statement {
    claim: Claim,
    named: FxHashSet<usize>,
}

impl Statement {
    /// Whether it puts the entry at `other` ahead of its own waiter; `None` if it says nothing about the two.
    fn is_ahead(&self, other: usize, entries: &[Entry], waits: &[u32]) -> Option<bool> {
        let (entry, other) = (entries.get(self.claim.at)?, entries.get(other)?);
        let told = is_contender(entry, other) && waits.get(other.group) == Some(&1);
        told.then(|| self.named.contains(&other.group))
    }
}

/// Reorders the entries as little as the claims require, and returns the claims that hold in the new order.
/// Contradictory claims are dropped; if no order satisfies the rest, all are.
fn settle(draft: &mut QueueDraft, claims: Vec<Claim>, index: &Index, waits: &[u32]) -> Vec<Claim> {
    let entries = &draft.entries;
    let statements = consistent(claims, entries, waits);
    let Some(order) = order(&statements, entries, waits) else { return Vec::new() };
    let mut places = vec![0; order.len()];
    for (place, old) in order.iter().enumerate() {
        put(&mut places, *old, place);
    }
    draft.entries = order.iter().filter_map(|old| entries.get(*old)).cloned().collect();
    let (mut marks, mut counted) = (Marks::new(index.len()), Marks::new(index.len()));
    let mut held = Vec::new();
    for Statement { mut claim, .. } in statements {
        claim.at = places.get(claim.at).copied().unwrap_or_default();
        marks.clear();
        for group in &claim.named {
            marks.add(*group);
        }
        if agrees(&claim, &draft.entries, &marks, &mut counted) {
            held.push(claim);
        }
    }
    held
}

/// The claims that name only holders and contenders, and that no other claim contradicts: of two waiters exactly one is
/// ahead of the other.
fn consistent(claims: Vec<Claim>, entries: &[Entry], waits: &[u32]) -> Vec<Statement> {
    let statements: Vec<Statement> = claims
        .into_iter()
        .map(|claim| Statement { named: claim.named.iter().copied().collect(), claim })
        .filter(|statement| {
            let Some(entry) = entries.get(statement.claim.at) else { return false };
            let contenders: FxHashSet<usize> = entries
                .iter()
                .filter(|other| is_contender(entry, other) && statement.named.contains(&other.group))
                .map(|other| other.group)
                .collect();
            statement.claim.holders + contenders.len() == statement.named.len()
        })
        .collect();
    let contradicts = |one: &Statement, other: &Statement| {
        let ahead = one.is_ahead(other.claim.at, entries, waits);
        ahead.is_some() && ahead == other.is_ahead(one.claim.at, entries, waits)
    };
    let sound: Vec<bool> =
        statements.iter().map(|one| !statements.iter().any(|other| contradicts(one, other))).collect();
    statements.into_iter().zip(sound).filter_map(|(statement, sound)| sound.then_some(statement)).collect()
}

/// The old positions in a new order that satisfies every statement and otherwise keeps the old order; `None` if there
/// is no such order.
fn order(statements: &[Statement], entries: &[Entry], waits: &[u32]) -> Option<Vec<usize>> {
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    let mut ahead = vec![0_u32; entries.len()];
    for statement in statements {
        let at = statement.claim.at;
        for other in 0..entries.len() {
            let Some(is_ahead) = statement.is_ahead(other, entries, waits) else { continue };
            let (first, second) = if is_ahead { (other, at) } else { (at, other) };
            behind.get_mut(first)?.push(second);
            *ahead.get_mut(second)? += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    ready.extend(ahead.iter().enumerate().filter(|(_, ahead)| **ahead == 0).map(|(at, _)| Reverse(at)));
    let mut order = Vec::with_capacity(entries.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for second in behind.get(at)? {
            let left = ahead.get_mut(*second)?;
            *left -= 1;
            if *left == 0 {
                ready.push(Reverse(*second));
            }
        }
    }
    (order.len() == entries.len()).then_some(order)
}
