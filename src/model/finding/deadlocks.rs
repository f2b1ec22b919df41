//! The server's count of deadlocks rose.

use super::look::{Look, parties_text};
use super::{Finding, Severity, Subject};
use crate::text::count;

/// Names the parties when their cycle was in the snapshot before; a deadlock that came and went between two
/// snapshots leaves only its count.
pub(super) fn check(look: &Look<'_>) -> Vec<Finding> {
    let scene = look.scene;
    let Some(previous) = scene.previous else { return Vec::new() };
    let (Some(before), Some(now)) = (previous.server(), scene.snapshot.server()) else { return Vec::new() };
    let rise = now.deadlocks.saturating_sub(before.deadlocks);
    // The count starts again with the server and with pg_stat_reset().
    if rise == 0 || before.started_at != now.started_at {
        return Vec::new();
    }
    let deadlocks = if rise == 1 { "a deadlock".to_owned() } else { format!("{} deadlocks", count(rise)) };
    let is_over = |cycle: &&Vec<_>| !scene.graph.cycles.contains(cycle);
    let seen = scene.previous_graph.and_then(|graph| graph.cycles.iter().find(is_over));
    let parties = match seen {
        Some(parties) if rise == 1 => format!(" of {}", parties_text(parties)),
        Some(parties) => format!(", one of {}", parties_text(parties)),
        None => String::new(),
    };
    let summary = format!("the server broke {deadlocks}{parties}");
    let subject =
        seen.and_then(|parties| parties.first()).map_or(Subject::Server, |party| look.subject(*party));
    let finding = Finding::new("deadlocks", Severity::Warning, summary, subject);
    vec![Finding { since: Some(previous.taken_at), ..finding }]
}
