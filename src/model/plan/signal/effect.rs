//! What it does to those that wait when sessions, or their transactions, end.

use crate::model::backend::{Backend, State};
use crate::model::goes_on::go_on;
use crate::model::lock::LockType;
use crate::model::plan::context::PlanIndex;
use crate::model::plan::{Effect, Verb};
use crate::model::wait_graph::Party;
use crate::text::count;

/// How many of those that proceed are named.
const NAMED: usize = 20;

/// What comes of it for everybody else.
///
/// A query that is cancelled ends its transaction: `AbortCurrentTransaction` in `src/backend/access/transam/xact.c` gives back
/// the locks at once, also within a transaction block, whose client has yet to notice. What was locked before a savepoint
/// stays, and so do advisory locks of the session. Neither can be seen from outside, unless the query is its transaction.
pub(in crate::model::plan) fn of(index: &PlanIndex<'_>, verb: Verb, parties: &[Party]) -> Effect {
    let graph = index.graph;
    let blocked = graph.blocked_by_all(parties).len();
    let woken = match verb {
        Verb::Cancel => graph.freed_by_rollback_of(parties),
        _ => graph.freed_by_all(parties),
    };
    let mut frees = go_on(graph, parties, woken);
    frees.retain(|party| !parties.contains(party));
    let is_sure = verb != Verb::Cancel || parties.iter().all(|party| is_own_transaction(index, *party));
    let proceeds = frees.iter().take(NAMED).map(|party| index.party_name(*party)).collect();
    let mut effect = Effect { blocked, frees, proceeds, is_sure, words: String::new() };
    effect.words = words(index, verb, parties, &effect);
    effect
}

/// Whether the query began its transaction, in which no savepoint can be older than it.
fn is_own_transaction(index: &PlanIndex<'_>, party: Party) -> bool {
    let backend = index.backend(party.pid());
    backend.is_some_and(|backend| is_single(backend) && backend.state == Some(State::Active))
}

/// Both are the start of the same message of the client (`StartTransaction` takes the statement's).
fn is_single(backend: &Backend) -> bool {
    backend.xact_start.is_some() && backend.xact_start == backend.query_start
}

fn words(index: &PlanIndex<'_>, verb: Verb, parties: &[Party], effect: &Effect) -> String {
    // Those that wait for one another are all meant.
    let nobody = if parties.len() > 1 { "nobody else" } else { "nobody" };
    let blocks = match effect.blocked {
        0 => format!("blocks {nobody}"),
        blocked => format!("blocks {}", count(blocked as u64)),
    };
    let likely = if effect.is_sure { "" } else { "likely " };
    let frees = match (effect.frees.len(), roots(index, parties)) {
        (0, _) if effect.blocked == 0 && !waits(index, parties) => String::new(),
        (0, Some(root)) => format!("; frees nobody; the root is {root}"),
        (0, None) => format!("; frees {nobody}"),
        (frees, _) => format!("; {likely}frees {} now: {}", count(frees as u64), named(effect)),
    };
    let stays = match verb {
        Verb::Cancel if parties.iter().any(|party| is_awaited_advisory(index, *party)) => {
            "; an advisory lock of the session stays"
        }
        _ => "",
    };
    format!("{blocks}{frees}{stays}")
}

fn named(effect: &Effect) -> String {
    const SHOWN: usize = 3;
    let shown = effect.proceeds.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match effect.frees.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {} more", count(more as u64)),
    }
}

fn waits(index: &PlanIndex<'_>, parties: &[Party]) -> bool {
    parties.iter().any(|party| index.graph.wait_of(*party).is_some())
}

/// The root that blocks most above a party that waits itself.
fn roots(index: &PlanIndex<'_>, parties: &[Party]) -> Option<String> {
    let [party] = parties else { return None };
    let above = index.graph.roots_above(*party);
    let first = index.party_name(*above.first()?);
    Some(match above.len() - 1 {
        0 => first,
        more => format!("{first} and {more} more"),
    })
}

/// Whether somebody waits for an advisory lock that the party holds.
fn is_awaited_advisory(index: &PlanIndex<'_>, party: Party) -> bool {
    let advisory = index.graph.queues.iter().filter(|queue| queue.tag.locktype() == LockType::Advisory);
    advisory.flat_map(|queue| &queue.holders).any(|holder| holder.party == party)
}
