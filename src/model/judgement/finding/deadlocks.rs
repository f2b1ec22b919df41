//! Deadlocks: those that the server has not broken yet, and those that it has.

use std::sync::Arc;

use chrono::TimeDelta;

use super::check_input::{CheckInput, parties_text, party_text};
use super::{Finding, LIMIT, Severity, Subject, listed};
use crate::model::disclosure::{Channel, shown};
use crate::model::lock_name::LockNames;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::wait_graph::{Party, WaitGraph};
use crate::model::{Text, Timestamp, words};
use crate::text::{count, one_line, one_line_prefix};

/// How long a deadlock is reported, and how long a cycle is remembered because it may prove to be one: a backend reports
/// its statistics up to ten seconds late (`PGSTAT_IDLE_INTERVAL` in `src/backend/utils/activity/pgstat.c`).
const MEMORY: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug, Clone, Default)]
pub struct Deadlocks {
    pub(crate) counted: Option<DeadlockCount>,
    /// Cycles of the last minute that are not yet matched to a deadlock.
    pub(crate) cycles: Vec<SeenCycle>,
    pub(crate) broken: Vec<Broken>,
}

/// The server's count at one time. It is comparable only with counts of the same server and databases.
#[derive(Debug, Clone)]
pub(crate) struct DeadlockCount {
    pub(crate) at: Timestamp,
    pub(crate) deadlocks: u64,
    pub(crate) databases: Arc<[u32]>,
    pub(crate) started_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub(crate) struct SeenCycle {
    pub(crate) parties: Vec<Party>,
    /// A description of each party, recorded while it existed: one of them has ended as soon as the deadlock is broken.
    pub(crate) texts: Vec<Text>,
    pub(crate) at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Victims {
    pub parties: Vec<Party>,
    /// One line each: `4410 deploy@ci waited for AccessExclusive on accounts: ALTER TABLE …`.
    pub texts: Vec<Text>,
}

impl Victims {
    /// ` of 4410 and 4466`; `rise` is the increase of the count.
    pub fn names(&self, rise: u64) -> String {
        let last = if rise == 1 { "" } else { ", the last" };
        format!("{last} of {}", parties_text(&self.parties))
    }

    /// The parties and what they waited for; for more than two, which do not fit on a line, only their names.
    pub fn words(&self, rise: u64) -> String {
        match self.texts.as_slice() {
            [one, other] if rise == 1 && one.contains(' ') => format!(": {one}; {other}"),
            _ => self.names(rise),
        }
    }
}

const LISTED: usize = 20;

/// Columns of a query that are kept.
const QUERY: usize = 200;

fn describe(snapshot: &Snapshot, graph: &WaitGraph, index: &SnapshotIndex, party: Party) -> Text {
    let Party::Backend(pid) = party else { return party_text(party).into() };
    let backend = index.backend(snapshot, pid);
    let who = backend.map(|backend| format!(" {}", words::who(backend))).unwrap_or_default();
    let waits = graph.wait_of(party).and_then(|(queue, place)| {
        let waiter = queue.waiters.get(place)?;
        let tag = index.awaited(&queue.tag, waiter.pid);
        let target = words::quoted(snapshot, &LockNames::default(), tag, backend);
        Some(format!(" waited for {}", words::request(waiter.mode, tag, &target)))
    });
    let query = backend.and_then(|backend| backend.query.as_ref()).filter(|query| !query.is_blank());
    let query = query.map(|query| format!(": {}", one_line_prefix(&shown(Channel::Events, query), QUERY)));
    let query = query.unwrap_or_default();
    one_line(&format!("{pid}{who}{}{query}", waits.unwrap_or_default())).into()
}

#[derive(Debug, Clone)]
pub(crate) struct Broken {
    /// The poll with the increased count, and the one before (`since`).
    pub(crate) at: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) rise: u64,
    pub(crate) victims: Option<Victims>,
}

impl Deadlocks {
    /// Adds the next snapshot. If its locks could not be read, `graph` is that of the last snapshot with locks.
    pub fn observe(&mut self, snapshot: &Snapshot, graph: &WaitGraph, index: &SnapshotIndex) {
        let now = snapshot.taken_at;
        // If the clock was set back, remembered times may be in the future.
        let recent = |at: Timestamp| at <= now && now - at <= MEMORY;
        self.cycles.retain(|seen| recent(seen.at));
        self.broken.retain(|broken| recent(broken.at));
        self.count(snapshot, graph);
        if !snapshot.locks.is_known() || graph.cycles.is_empty() {
            return;
        }
        for cycle in graph.cycles.iter().take(LIMIT) {
            self.cycles.retain(|seen| seen.parties != *cycle);
            let said =
                cycle.iter().take(LISTED).map(|party| describe(snapshot, graph, index, *party)).collect();
            self.cycles.push(SeenCycle { parties: cycle.clone(), texts: said, at: now });
        }
        self.cycles.drain(..self.cycles.len().saturating_sub(LIMIT));
    }

    /// The increase of the count at this snapshot, and the parties, if their cycle was seen.
    pub fn counted_at(&self, at: Timestamp) -> Option<(u64, Option<&Victims>)> {
        let broken = self.broken.last().filter(|broken| broken.at == at)?;
        Some((broken.rise, broken.victims.as_ref()))
    }

    fn count(&mut self, snapshot: &Snapshot, graph: &WaitGraph) {
        let Some(server) = snapshot.server() else { return };
        if !snapshot.server.is_known() || server.deadlocks_of.is_empty() {
            return;
        }
        let now = DeadlockCount {
            at: snapshot.taken_at,
            deadlocks: server.deadlocks,
            databases: Arc::clone(&server.deadlocks_of),
            started_at: server.started_at,
        };
        let (at, deadlocks) = (now.at, now.deadlocks);
        let same =
            |before: &DeadlockCount| (before.started_at == now.started_at, before.databases == now.databases);
        let (same_server, same_databases) = self.counted.as_ref().map_or((true, false), same);
        if !same_server {
            *self = Self::default();
        }
        let Some(before) = self.counted.replace(now).filter(|_| same_databases) else { return };
        // The count starts again after `pg_stat_reset()`.
        let rise = deadlocks.saturating_sub(before.deadlocks);
        if rise > 0 {
            let over = self.cycles.iter().rposition(|seen| !graph.cycles.contains(&seen.parties));
            let victims = over.map(|index| {
                let SeenCycle { parties, texts: said, .. } = self.cycles.remove(index);
                Victims { parties, texts: said }
            });
            self.broken.push(Broken { at, since: before.at, rise, victims });
        }
    }
}

/// Names the parties if their cycle was in one of the earlier snapshots; a deadlock between two snapshots leaves only its
/// count.
pub(super) fn broken_deadlocks(input: &CheckInput<'_>) -> Vec<Finding> {
    let broken = &input.deadlocks.broken;
    let Some(first) = broken.first() else { return Vec::new() };
    let rise: u64 = broken.iter().map(|broken| broken.rise).sum();
    let deadlocks = if rise == 1 { "a deadlock".to_owned() } else { format!("{} deadlocks", count(rise)) };
    let all: Vec<&Victims> = broken.iter().rev().filter_map(|broken| broken.victims.as_ref()).collect();
    let seen = all.first();
    let parties = seen.map(|seen| seen.names(rise)).unwrap_or_default();
    let short = format!("the server broke {deadlocks}{parties}");
    let summary =
        format!("the server broke {deadlocks}{}", seen.map(|seen| seen.words(rise)).unwrap_or_default());
    let subject =
        seen.and_then(|seen| seen.parties.first()).map_or(Subject::Server, |party| input.subject(*party));
    let finding = Finding::new("deadlocks", Severity::Warning, summary, subject).short(short);
    let details = all.iter().flat_map(|victims| victims.texts.iter().cloned()).collect();
    vec![Finding { since: Some(first.since), details, ..finding }]
}

/// A cycle of the wait graph: a deadlock that the server has not broken yet (it checks after `deadlock_timeout`).
pub(super) fn cycles(input: &CheckInput<'_>) -> Vec<Finding> {
    listed("cycle", input.graph.cycles.iter(), |cycle| {
        let parties = parties_text(cycle);
        let subject = input.subject(*cycle.first()?);
        let summary = format!("deadlock: {parties} wait for each other");
        let finding = Finding::new("cycle", Severity::Critical, summary, subject);
        let blocked = u32::try_from(cycle.len()).unwrap_or(u32::MAX);
        let who = cycle.iter().filter_map(|party| Some(words::who(input.backend(party.pid())?)));
        let finding = finding.about(who.take(4).collect::<Vec<_>>().join(" and "));
        Some(Finding { blocked, help: Some("cancel"), ..finding })
    })
}
