//! The server's count of deadlocks rose.

use std::sync::Arc;

use chrono::TimeDelta;

use super::look::{Look, parties_text};
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::Timestamp;
use crate::model::snapshot::Snapshot;
use crate::model::wait_graph::{Party, WaitGraph};
use crate::text::count;

/// How long a deadlock is told, and how long a cycle is remembered that may turn out to have been one: a backend
/// reports its statistics up to ten seconds late (`PGSTAT_IDLE_INTERVAL` in `src/backend/utils/activity/pgstat.c`).
const MEMORY: TimeDelta = TimeDelta::seconds(60);

/// What is remembered of deadlocks from snapshot to snapshot.
#[derive(Debug, Clone, Default)]
pub struct Deadlocks {
    counted: Option<Counted>,
    /// Cycles of the last minute, that of no deadlock yet.
    cycles: Vec<Seen>,
    /// Deadlocks of the last minute, oldest first.
    broken: Vec<Broken>,
}

/// The server's count at one moment. It says nothing beside one over other databases or of another server.
#[derive(Debug, Clone)]
struct Counted {
    at: Timestamp,
    deadlocks: u64,
    databases: Arc<[u32]>,
    started_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Seen {
    parties: Vec<Party>,
    at: Timestamp,
}

#[derive(Debug, Clone)]
struct Broken {
    /// When the count had risen, and when it had not.
    at: Timestamp,
    since: Timestamp,
    rise: u64,
    parties: Option<Vec<Party>>,
}

impl Deadlocks {
    /// Takes the next snapshot in. Where its locks could not be read, `graph` is that of the last that could.
    pub fn look(&mut self, snapshot: &Snapshot, graph: &WaitGraph) {
        let now = snapshot.taken_at;
        // A clock that was set back leaves moments of the future.
        let recent = |at: Timestamp| at <= now && now - at <= MEMORY;
        self.cycles.retain(|seen| recent(seen.at));
        self.broken.retain(|broken| recent(broken.at));
        self.count(snapshot, graph);
        if snapshot.locks.error.is_some() {
            return;
        }
        for cycle in graph.cycles.iter().take(LIMIT) {
            self.cycles.retain(|seen| seen.parties != *cycle);
            self.cycles.push(Seen { parties: cycle.clone(), at: now });
        }
        self.cycles.drain(..self.cycles.len().saturating_sub(LIMIT));
    }

    /// By how much the count had risen when this snapshot was taken, and who waited for each other, where that was seen.
    #[must_use]
    pub fn counted_at(&self, at: Timestamp) -> Option<(u64, Option<&[Party]>)> {
        let broken = self.broken.last().filter(|broken| broken.at == at)?;
        Some((broken.rise, broken.parties.as_deref()))
    }

    fn count(&mut self, snapshot: &Snapshot, graph: &WaitGraph) {
        let Some(server) = snapshot.server() else { return };
        if snapshot.server.error.is_some() || server.deadlocks_of.is_empty() {
            return;
        }
        let now = Counted {
            at: snapshot.taken_at,
            deadlocks: server.deadlocks,
            databases: Arc::clone(&server.deadlocks_of),
            started_at: server.started_at,
        };
        let (at, deadlocks) = (now.at, now.deadlocks);
        let same =
            |before: &Counted| (before.started_at == now.started_at, before.databases == now.databases);
        let (same_server, same_databases) = self.counted.as_ref().map_or((true, false), same);
        if !same_server {
            *self = Self::default();
        }
        let Some(before) = self.counted.replace(now).filter(|_| same_databases) else { return };
        // The count starts again with pg_stat_reset().
        let rise = deadlocks.saturating_sub(before.deadlocks);
        if rise > 0 {
            // The last that was seen and is no more.
            let over = self.cycles.iter().rposition(|seen| !graph.cycles.contains(&seen.parties));
            let parties = over.map(|index| self.cycles.remove(index).parties);
            self.broken.push(Broken { at, since: before.at, rise, parties });
        }
    }
}

/// Names the parties when their cycle was in one of the snapshots before; a deadlock that came and went between two
/// snapshots leaves only its count.
pub(super) fn check(look: &Look<'_>) -> Vec<Finding> {
    let broken = &look.scene.deadlocks.broken;
    let Some(first) = broken.first() else { return Vec::new() };
    let rise: u64 = broken.iter().map(|broken| broken.rise).sum();
    let deadlocks = if rise == 1 { "a deadlock".to_owned() } else { format!("{} deadlocks", count(rise)) };
    let seen = broken.iter().rev().find_map(|broken| broken.parties.as_ref());
    let parties = match seen {
        Some(parties) if rise == 1 => format!(" of {}", parties_text(parties)),
        Some(parties) => format!(", one of {}", parties_text(parties)),
        None => String::new(),
    };
    let summary = format!("the server broke {deadlocks}{parties}");
    let subject =
        seen.and_then(|parties| parties.first()).map_or(Subject::Server, |party| look.subject(*party));
    let finding = Finding::new("deadlocks", Severity::Warning, summary, subject);
    vec![Finding { since: Some(first.since), ..finding }]
}
