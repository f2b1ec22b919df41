//! The order of a queue that differs from the inferred one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use super::{Claim, Marks, agrees, is_contender};
use crate::graph::index::Index;
use crate::graph::queue::{Draft, Entry};

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
pub(super) fn settle(draft: &mut Draft, claims: Vec<Claim>, index: &Index, waits: &[u32]) -> Vec<Claim> {
    let entries = &draft.entries;
    let statements = consistent(claims, entries, waits);
    let Some(order) = order(&statements, entries, waits) else { return Vec::new() };
    let mut places = vec![0; order.len()];
    for (place, old) in order.iter().enumerate() {
        if let Some(at) = places.get_mut(*old) {
            *at = place;
        }
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
