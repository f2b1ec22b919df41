//! What the titles say of the work queue, the rate limits and the id generators.

use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::rate_limit::{self, LimitState};
use crate::model::systems::TableRows;
use crate::model::work_queue::ItemState;

/// `1,204 pending · 4 processing · 1 lost · 3 failed · oldest 25m10s · 118/min · 10,000+ completed`
pub(super) fn items(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let depth = &scene.view.queue.depth;
    let systems = &scene.snapshot.systems;
    let mut facts = stale(scene, &systems.counts);
    if facts.is_empty() {
        facts = stale(scene, &systems.items);
    }
    if systems.counts.iter().all(|table| table.section.taken_at.is_none()) {
        return facts;
    }
    facts.push((format!("{} pending", depth.pending), Tone::Plain));
    facts.push((format!("{} processing", depth.processing), Tone::Plain));
    let lost = scene.view.queue.of_state(ItemState::Lost).count();
    if lost > 0 {
        facts.push((format!("{lost} lost"), Tone::Critical));
    }
    let slow = scene.view.queue.of_state(ItemState::Slow).count();
    if slow > 0 {
        facts.push((format!("{slow} slow"), Tone::Warning));
    }
    if depth.failed.count > 0 {
        facts.push((format!("{} failed", depth.failed), Tone::Warning));
    }
    if let Some(age) = scene.age(depth.oldest_pending_at) {
        facts.push((format!("oldest {}", crate::text::duration(age)), Tone::Plain));
    }
    if let Some(rate) = depth.per_minute {
        facts.push((format!("{}/min", crate::text::count(rate)), Tone::Plain));
    }
    facts.push((format!("{} completed", depth.completed), Tone::Dim));
    if depth.other.count > 0 {
        facts.push((format!("{} of another status", depth.other), Tone::Dim));
    }
    if systems.items.iter().any(|table| table.is_cut) || depth.processing.is_more {
        facts.push(("older items are not read".to_owned(), Tone::Warning));
    }
    facts
}

/// `3 keys · 1 full`
pub(super) fn limits(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let tables = &scene.snapshot.systems.limits;
    let mut facts = stale(scene, tables);
    facts.push((count(tables, "key", "keys"), Tone::Plain));
    let full = rate_limit::rows(scene.snapshot).filter(|row| row.state == LimitState::Full).count();
    if full > 0 {
        facts.push((format!("{full} full"), Tone::Warning));
    }
    facts.extend(cut(tables));
    facts
}

/// `3 workers`
pub(super) fn generators(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let tables = &scene.snapshot.systems.generators;
    let mut facts = stale(scene, tables);
    facts.push((count(tables, "worker", "workers"), Tone::Plain));
    facts.extend(cut(tables));
    facts
}

/// How many items have lost their worker, for the header.
pub(super) fn urgent(scene: &Scene<'_>) -> Option<(String, Tone)> {
    let lost = scene.view.queue.of_state(ItemState::Lost).count();
    let noun = if lost == 1 { "item" } else { "items" };
    (lost > 0).then(|| (format!("{lost} {noun} lost"), Tone::Critical))
}

fn count<T>(tables: &[TableRows<T>], one: &str, many: &str) -> String {
    let number: usize = tables.iter().map(|table| table.section.rows.len()).sum();
    format!("{} {}", crate::text::count(number as u64), if number == 1 { one } else { many })
}

fn cut<T>(tables: &[TableRows<T>]) -> Option<(String, Tone)> {
    tables.iter().any(|table| table.is_cut).then(|| ("more are not read".to_owned(), Tone::Warning))
}

/// How old the rows of each table are that could not be read.
pub(super) fn stale<T>(scene: &Scene<'_>, tables: &[TableRows<T>]) -> Vec<(String, Tone)> {
    let error = |table: &TableRows<T>| {
        let error = table.section.error.clone()?;
        Some(super::body::stale(scene, table.section.taken_at, &error))
    };
    tables.iter().filter_map(error).collect()
}
