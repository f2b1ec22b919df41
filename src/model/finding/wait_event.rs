//! Waits whose individual blockers the server does not report: for a buffer pin, for server processes.

use super::check_input::{CheckInput, parties_text};
use super::{Finding, LIMIT, Severity};
use crate::model::backend::{Backend, State};
use crate::model::consequence::{awaits_standby, ignores_cancel};
use crate::model::observed::Observed;
use crate::model::snapshot::Snapshot;
use crate::model::wait_graph::Party;

const CHECK: &str = "wait_event";

/// A wait event in which a session can block others or be blocked, with the server's description of it
/// (`src/backend/utils/activity/wait_event_names.txt`).
struct Event {
    name: &'static str,
    waits_for: &'static str,
    /// A session that keeps a snapshot may be the blocker; no view shows it.
    by_snapshot: bool,
    remedy: &'static str,
}

const EVENTS: [Event; 8] = [
    Event {
        name: "BufferPin",
        waits_for: "a page that another session has pinned",
        by_snapshot: true,
        remedy: "an open cursor or a stopped scan pins it; terminate that session or close its cursor",
    },
    Event {
        name: "SafeSnapshot",
        waits_for: "serializable transactions that may write",
        by_snapshot: false,
        remedy: "SELECT pg_safe_snapshot_blocking_pids(pid) names them; it continues when they have ended",
    },
    Event {
        name: "ProcSignalBarrier",
        waits_for: "every process of the server to answer a signal",
        by_snapshot: false,
        remedy: "a stopped process, or one in a long loop without a check for signals, does not answer",
    },
    Event {
        name: "BackendTermination",
        waits_for: "a process to end",
        by_snapshot: false,
        remedy: "a terminated process has not ended yet: it rolls back, or is stopped",
    },
    Event {
        name: "ReplicationSlotDrop",
        waits_for: "a replication slot that is in use",
        by_snapshot: false,
        remedy: "pg_replication_slots.active_pid has it",
    },
    Event {
        name: "RecoveryConflictSnapshot",
        waits_for: "queries on this standby that need removed rows",
        by_snapshot: true,
        remedy: "max_standby_streaming_delay limits how long",
    },
    Event {
        name: "RecoveryConflictTablespace",
        waits_for: "queries on this standby that use a tablespace",
        by_snapshot: false,
        remedy: "max_standby_streaming_delay limits how long",
    },
    Event {
        name: "LogicalSyncStateChange",
        waits_for: "a worker of logical replication",
        by_snapshot: false,
        remedy: "the log of the subscriber has the reason why that worker does not continue",
    },
];

pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let Observed::Read(backends) = look.snapshot.backends.observed() else { return Vec::new() };
    // If the server reports the blockers, the wait is in the graph.
    let is_named = |row: &&Backend| look.graph.wait_of(Party::Backend(row.group())).is_some();
    let unnamed = backends.iter().filter(|row| !is_named(row));
    let waits = unnamed.filter_map(|row| Some((row, event_of(row)?)));
    let mut waits: Vec<_> =
        waits.filter(|(row, _)| look.is_older(since(row), look.thresholds.wait)).collect();
    waits.sort_by_key(|(row, _)| (since(row), row.pid));
    let left_out = waits.len().saturating_sub(LIMIT);
    let listed = waits.into_iter().take(LIMIT).map(|(row, event)| finding(look, row, event));
    listed.chain(Finding::more(CHECK, left_out)).collect()
}

/// The server does not show the start of such a wait: it began after the statement did.
fn since(row: &Backend) -> Option<crate::model::Timestamp> {
    row.query_start.or(row.state_change).or(row.backend_start)
}

fn finding(look: &CheckInput<'_>, row: &Backend, event: &Event) -> Finding {
    let who = perhaps(look.snapshot, row, event);
    let age = look.age_text(since(row));
    let summary = format!(
        "{} waits for {} ({}){who}; its statement began{age} ago",
        row.pid, event.waits_for, event.name
    );
    let finding = Finding::new(CHECK, Severity::Warning, summary, look.subject(Party::Backend(row.pid)));
    let finding = finding.short(format!("{} waits for {}{who}", row.pid, event.waits_for));
    let about = look.about(row.pid, Some(event.remedy));
    Finding { since: since(row), ..finding.about(about).running(look.statement(row.pid)) }
}

fn event_of(row: &Backend) -> Option<&'static Event> {
    let name = row.wait_event.as_deref()?;
    EVENTS.iter().find(|event| event.name == name)
}

fn perhaps(snapshot: &Snapshot, row: &Backend, event: &Event) -> String {
    let who = if event.by_snapshot { open_snapshots(snapshot, row) } else { Vec::new() };
    if who.is_empty() { String::new() } else { format!("; perhaps {}", parties_text(&who)) }
}

/// `waits for a page that another session has pinned; perhaps 4312`: for a session whose blocker no view shows.
pub fn unnamed_wait(snapshot: &Snapshot, row: &Backend) -> Option<String> {
    let event = event_of(row)?;
    Some(format!("waits for {}{}", event.waits_for, perhaps(snapshot, row, event)))
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
    open.sort_by_key(|row| (row.state_change, row.pid));
    open.into_iter().map(|row| Party::Backend(row.pid)).collect()
}
