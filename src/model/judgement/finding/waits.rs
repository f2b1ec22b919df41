//! Waits that are too long, that have no known blocker, or that pile up.

use std::collections::BTreeMap;

use super::check_input::{CheckInput, parties_text, party_text};
use super::{Finding, Severity, Subject, listed};
use crate::model::awaited_locks::waits_by_mode;
use crate::model::backend::{Backend, State};
use crate::model::consequence::{awaits_standby, ignores_cancel};
use crate::model::plan::Verb;
use crate::model::section::Observed;
use crate::model::snapshot::Snapshot;
use crate::model::wait_graph::{Holder, Party, Queue, Waiter};
use crate::model::{Timestamp, words};
use crate::order::SortExt;
use crate::text::count;

pub(super) const LONG_WAIT: &str = "long_wait";

/// The longest wait for each lock, if it is too long, and how many more wait too long for the same. If all holders of the
/// lock wait too long themselves, it is part of a chain, whose first such wait is reported: usually the one for a lock of
/// the root.
pub(super) fn long_waits(input: &CheckInput<'_>) -> Vec<Finding> {
    let queues = input.graph.queues.iter().filter(|queue| !input.is_normal(queue));
    let mut waits: Vec<_> = queues.filter_map(|queue| longest_wait(input, queue)).collect();
    waits.order_by_key(|(since, _, waiter, _)| (*since, waiter.pid));
    listed(LONG_WAIT, waits.into_iter(), |(since, queue, waiter, others)| {
        let who = party_text(waiter.party);
        let age = input.age_text(Some(since));
        let awaited = input.index.awaited(&queue.tag, waiter.pid);
        let target = input.target(awaited, queue.holders.first().map(|holder| holder.party.pid()));
        let request = words::request(waiter.mode, awaited, &target);
        // Too few for a convoy, but of the same kind and with the same remedy.
        let cancel = || input.view.promise_of(Verb::Cancel, &[waiter.party]);
        let promise = holds_up(queue, waiter).then(cancel).filter(|promise| promise.now > 0);
        let more = match (promise, others) {
            (None, 0) => String::new(),
            (None, others) => format!(", and {others} more"),
            (Some(promise), _) => format!(", {}", promise.words()),
        };
        let summary = format!("{who} waits{age} for {request}{more}");
        let finding = Finding::new(LONG_WAIT, wait_severity(queue), summary, input.subject(waiter.party));
        let finding = finding.short(format!("{who} waits{age} for {target}{more}"));
        let object = format!(" for {request}");
        let finding = finding.in_row(Some(since), format!("{who} waits{object}{more}"), "");
        let help = promise.map(|_| "cancel");
        Finding {
            since: Some(since),
            help,
            ..finding
                .about(input.about(waiter.party.pid(), None))
                .running(input.statement(waiter.party.pid()))
        }
    })
}

fn holds_up(queue: &Queue, waiter: &Waiter) -> bool {
    let is_it = |place: usize| queue.waiters.get(place).is_some_and(|other| other.party == waiter.party);
    waits_by_mode(queue).into_iter().any(|(place, behind)| behind > 0 && is_it(place))
}

/// The blocker of a long wait already has a warning, as a root, a prepared transaction or a deadlock: the wait itself is a
/// warning only if no holder of the lock is known.
fn wait_severity(queue: &Queue) -> Severity {
    if queue.holders.is_empty() { Severity::Warning } else { Severity::Info }
}

/// Since when, where and who waits longest, and the number of other waits in the queue that are too long.
type LongestWait<'a> = (Timestamp, &'a Queue, &'a Waiter, usize);

fn longest_wait<'a>(input: &CheckInput<'_>, queue: &'a Queue) -> Option<LongestWait<'a>> {
    let limit = input.thresholds.wait;
    let long = || queue.waiters.iter().filter(|waiter| input.is_older(waiter.wait_start, limit));
    let waiter = long().min_by_key(|waiter| (waiter.wait_start, waiter.pid))?;
    if !queue.holders.is_empty() && queue.holders.iter().all(|holder| waits_long(input, holder)) {
        return None;
    }
    Some((waiter.wait_start?, queue, waiter, long().count().saturating_sub(1)))
}

/// Whether a holder waits too long itself: then its wait is reported, or one above it, or the cycle that contains them.
fn waits_long(input: &CheckInput<'_>, holder: &Holder) -> bool {
    let (graph, index, thresholds) = (&input.graph, &input.index, input.thresholds);
    let place = index.node(graph, holder.party).and_then(|(_, node)| node.waits);
    let waiter = place.and_then(|(queue, at)| graph.queues.get(queue)?.waiters.get(at));
    waiter.is_some_and(|waiter| input.is_older(waiter.wait_start, thresholds.wait))
}

const WAIT_EVENT: &str = "wait_event";

/// A wait event in which a session can block others or be blocked, with the server's description of it
/// (`src/backend/utils/activity/wait_event_names.txt`).
struct WaitEvent<'a> {
    name: &'a str,
    waits_for: &'static str,
    remedy: &'static str,
}

fn event_of(row: &Backend) -> Option<WaitEvent<'_>> {
    const STANDBY: &str = "max_standby_streaming_delay limits how long";
    let name = row.wait_event.as_deref()?;
    let (waits_for, remedy) = match name {
        "BufferPin" => (
            "a page that another session has pinned",
            "an open cursor or a stopped scan pins it; terminate that session or close its cursor",
        ),
        "SafeSnapshot" => (
            "serializable transactions that may write",
            "SELECT pg_safe_snapshot_blocking_pids(pid) names them; it continues when they have ended",
        ),
        "ProcSignalBarrier" => (
            "every process of the server to answer a signal",
            "a stopped process, or one in a long loop without a check for signals, does not answer",
        ),
        "BackendTermination" => {
            ("a process to end", "a terminated process has not ended yet: it rolls back, or is stopped")
        }
        "ReplicationSlotDrop" => {
            ("a replication slot that is in use", "pg_replication_slots.active_pid has it")
        }
        "RecoveryConflictSnapshot" => ("queries on this standby that need removed rows", STANDBY),
        "RecoveryConflictTablespace" => ("queries on this standby that use a tablespace", STANDBY),
        "LogicalSyncStateChange" => (
            "a worker of logical replication",
            "the log of the subscriber has the reason why that worker does not continue",
        ),
        _ => return None,
    };
    Some(WaitEvent { name, waits_for, remedy })
}

/// Waits whose individual blockers the server does not report: for a buffer pin, for server processes.
pub(super) fn wait_events(input: &CheckInput<'_>) -> Vec<Finding> {
    let Observed::Read(backends) = input.snapshot.backends.observed() else { return Vec::new() };
    // If the server reports the blockers, the wait is in the graph.
    let is_named = |row: &&Backend| input.graph.wait_of(Party::Backend(row.group())).is_some();
    let unnamed = backends.iter().filter(|row| !is_named(row));
    let waits = unnamed.filter_map(|row| Some((row, event_of(row)?)));
    let mut waits: Vec<_> = waits
        .filter(|(row, _)| event_since(row).is_none_or(|since| input.age(since) >= input.thresholds.wait))
        .collect();
    waits.order_by_key(|(row, _)| (event_since(row), row.pid));
    listed(WAIT_EVENT, waits.into_iter(), |(row, event)| event_finding(input, row, &event))
}

/// The server does not show the start of such a wait: it began after the statement did. A process without statements, such as the
/// startup process, does not tell.
fn event_since(row: &Backend) -> Option<crate::model::Timestamp> {
    row.query_start.or(row.state_change)
}

fn event_finding(input: &CheckInput<'_>, row: &Backend, event: &WaitEvent<'_>) -> Finding {
    let who = perhaps(input.snapshot, row, event);
    let replayed = input.snapshot.server().and_then(|server| server.replayed_at);
    let replayed = replayed.filter(|_| row.backend_type.as_deref() == Some("startup"));
    let since = match (event_since(row), replayed) {
        (Some(since), _) => format!("; its statement began{} ago", input.age_text(Some(since))),
        (None, Some(at)) => format!("; the last transaction was replayed{} ago", input.age_text(Some(at))),
        (None, None) => String::new(),
    };
    let summary = format!("{} waits for {} ({}){who}{since}", row.pid, event.waits_for, event.name);
    let is_long = event_since(row).is_some() || input.is_older(replayed, input.thresholds.wait);
    let severity = if is_long { Severity::Warning } else { Severity::Info };
    let finding = Finding::new(WAIT_EVENT, severity, summary, input.subject(Party::Backend(row.pid)));
    let finding = finding.short(format!("{} waits for {}{who}", row.pid, event.waits_for));
    let about = input.about(row.pid, Some(event.remedy));
    Finding { since: event_since(row), ..finding.about(about).running(input.statement(row.pid)) }
}

fn perhaps(snapshot: &Snapshot, row: &Backend, event: &WaitEvent<'_>) -> String {
    // A session that keeps a snapshot may be the blocker; no view shows it.
    let is_by_snapshot = matches!(event.name, "BufferPin" | "RecoveryConflictSnapshot");
    let who = if is_by_snapshot { open_snapshots(snapshot, row) } else { Vec::new() };
    if who.is_empty() { String::new() } else { format!("; perhaps {}", parties_text(&who)) }
}

/// `waits for a page that another session has pinned; perhaps 4312`: for a session whose blocker no view shows.
pub fn unnamed_wait(snapshot: &Snapshot, row: &Backend) -> Option<String> {
    let event = event_of(row)?;
    Some(format!("waits for {}{}", event.waits_for, perhaps(snapshot, row, &event)))
}

/// Whether a session does nothing until another session, a client or a standby acts.
pub(super) fn stalls(row: &Backend) -> bool {
    let does_nothing = || event_of(row).is_some() || awaits_standby(row) || ignores_cancel(row).is_some();
    row.state == Some(State::Active) && does_nothing()
}

/// Sessions of the database that keep a snapshot while they are idle, such as those with an open cursor.
fn open_snapshots(snapshot: &Snapshot, waiter: &Backend) -> Vec<Party> {
    let Observed::Read(backends) = snapshot.backends.observed() else { return Vec::new() };
    let mut open: Vec<&Backend> = backends
        .iter()
        .filter(|row| {
            row.pid != waiter.pid
                && row.backend_xmin.is_some()
                && (row.datid == waiter.datid || waiter.datid.is_none())
                && row.state.is_some_and(State::is_idle_in_transaction)
        })
        .collect();
    open.order_by_key(|row| (row.state_change, row.pid));
    open.into_iter().map(|row| Party::Backend(row.pid)).collect()
}

/// Waits for an `LWLock`, for input and output, and for a synchronous standby: `pg_locks` shows none of them.
pub(super) fn pile_ups(input: &CheckInput<'_>) -> Vec<Finding> {
    let Observed::Read(backends) = input.snapshot.backends.observed() else { return Vec::new() };
    let mut waits: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for event in backends.iter().filter_map(piling_event) {
        *waits.entry(event).or_default() += 1;
    }
    waits.retain(|_, number| *number >= input.thresholds.pile_up.max(1));
    let finding = |((kind, event), number): ((&str, &str), u32)| {
        let number_text = count(number.into());
        let summary = if event == "SyncRep" {
            format!("{number_text} backends wait for a synchronous standby (SyncRep)")
        } else {
            format!("{number_text} backends wait on {kind} {event}")
        };
        let finding = Finding::new("pile_up", Severity::Warning, summary, Subject::Server);
        Finding { blocked: number, ..finding }
    };
    waits.into_iter().map(finding).collect()
}

/// The wait event of an active backend, if it is of a kind that can pile up.
fn piling_event(backend: &Backend) -> Option<(&str, &str)> {
    let working = matches!(backend.state?, State::Active | State::FastpathFunctionCall);
    let (kind, event) = (backend.wait_event_type.as_deref()?, backend.wait_event.as_deref()?);
    let piles_up = matches!(kind, "LWLock" | "IO") || event == "SyncRep";
    (working && piles_up).then_some((kind, event))
}
