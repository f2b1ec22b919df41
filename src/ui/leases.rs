//! What the titles and the header say of the leases.

use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::lease::LeaseState;

/// How old the rows of a table that could not be read are; then `4 held · 1 expired`, and what was left out.
pub(super) fn facts(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let tables = &scene.snapshot.systems.leases;
    let mut facts = super::queue::stale(scene, tables);
    let counts = &scene.view.leases.counts;
    facts.push((format!("{} held", counts.of(LeaseState::Held)), Tone::Plain));
    let expired = counts.of(LeaseState::Expired);
    if expired > 0 {
        facts.push((format!("{expired} expired"), Tone::Warning));
    }
    if tables.iter().any(|table| table.is_cut) {
        facts.push(("more are not read".to_owned(), Tone::Warning));
    }
    let redis = &scene.snapshot.systems.redis;
    facts.extend(redis.down_text().map(|down| (format!("redis {down}"), Tone::Warning)));
    if redis.cut {
        facts.push(("redis: not all keys".to_owned(), Tone::Dim));
    }
    facts
}

/// `1 lease expired`
pub(super) fn urgent(scene: &Scene<'_>) -> Option<(String, Tone)> {
    let expired = scene.view.leases.counts.of(LeaseState::Expired);
    let noun = if expired == 1 { "lease" } else { "leases" };
    (expired > 0).then(|| (format!("{expired} {noun} expired"), Tone::Warning))
}
