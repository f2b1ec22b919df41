use super::check_input::{CheckInput, party_text};
use super::{Finding, LIMIT, Severity};
use crate::model::Timestamp;
use crate::model::held_up::held_up;
use crate::model::plan::Verb;
use crate::model::wait_graph::{Holder, Queue, Waiter};
use crate::model::words;

pub(super) const CHECK: &str = "long_wait";

/// The longest wait for each lock, if it is too long, and how many more wait too long for the same. If all holders of the
/// lock wait too long themselves, it is part of a chain, whose first such wait is reported: usually the one for a lock of
/// the root.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let mut waits: Vec<_> = look.graph.queues.iter().filter_map(|queue| longest(look, queue)).collect();
    waits.sort_by_key(|wait| (wait.since, wait.waiter.pid));
    let left_out = waits.len().saturating_sub(LIMIT);
    let listed = waits.into_iter().take(LIMIT).map(|Wait { since, queue, waiter, others }| {
        let who = party_text(waiter.party);
        let age = look.age_text(Some(since));
        let awaited = look.awaited(&queue.tag, waiter.pid);
        let target = look.target(awaited, queue.holders.first().map(|holder| holder.party.pid()));
        let request = words::request(waiter.mode, awaited, &target);
        // Too few for a convoy, but of the same kind and with the same remedy.
        let cancel = || look.view.promise_of(Verb::Cancel, &[waiter.party]);
        let promise = holds_up(queue, waiter).then(cancel).filter(|promise| promise.now > 0);
        let more = match (promise, others) {
            (None, 0) => String::new(),
            (None, others) => format!(", and {others} more"),
            (Some(promise), _) => format!(", {}", promise.words()),
        };
        let summary = format!("{who} waits{age} for {request}{more}");
        let finding = Finding::new(CHECK, severity(queue), summary, look.subject(waiter.party));
        let finding = finding.short(format!("{who} waits{age} for {target}{more}"));
        let object = format!(" for {request}");
        let finding = finding.in_row(Some(since), format!("{who} waits{object}{more}"), "");
        let help = promise.map(|_| "cancel");
        Finding {
            since: Some(since),
            help,
            ..finding.about(look.about(waiter.party.pid(), None)).running(look.statement(waiter.party.pid()))
        }
    });
    listed.chain(Finding::more(CHECK, left_out)).collect()
}

fn holds_up(queue: &Queue, waiter: &Waiter) -> bool {
    let is_it = |place: usize| queue.waiters.get(place).is_some_and(|other| other.party == waiter.party);
    held_up(queue).into_iter().any(|(place, behind)| behind > 0 && is_it(place))
}

/// The blocker of a long wait already has a warning, as a root, a prepared transaction or a deadlock: the wait itself is a
/// warning only if no holder of the lock is known.
fn severity(queue: &Queue) -> Severity {
    if queue.holders.is_empty() { Severity::Warning } else { Severity::Info }
}

struct Wait<'a> {
    since: Timestamp,
    queue: &'a Queue,
    waiter: &'a Waiter,
    /// The number of other waits in the queue that are too long.
    others: usize,
}

fn longest<'a>(look: &CheckInput<'_>, queue: &'a Queue) -> Option<Wait<'a>> {
    let limit = look.thresholds.wait;
    let long = || queue.waiters.iter().filter(|waiter| look.is_older(waiter.wait_start, limit));
    let waiter = long().min_by_key(|waiter| (waiter.wait_start, waiter.pid))?;
    if !queue.holders.is_empty() && queue.holders.iter().all(|holder| waits_long(look, holder)) {
        return None;
    }
    Some(Wait { since: waiter.wait_start?, queue, waiter, others: long().count().saturating_sub(1) })
}

/// Whether a holder waits too long itself: then its wait is reported, or one above it, or the cycle that contains them.
fn waits_long(look: &CheckInput<'_>, holder: &Holder) -> bool {
    let (graph, index, thresholds) = (&look.graph, &look.index, look.thresholds);
    let place = index.node(graph, holder.party).and_then(|(_, node)| node.waits);
    let waiter = place.and_then(|(queue, at)| graph.queues.get(queue)?.waiters.get(at));
    waiter.is_some_and(|waiter| look.is_older(waiter.wait_start, thresholds.wait))
}
