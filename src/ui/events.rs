//! What the title says of the events.

use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::event::Kind;
use crate::text::count;

/// `1,204 · 61 waits begun · 55 over`, and how many there is no room for any more.
pub(super) fn facts(scene: &Scene<'_>) -> Vec<(String, Tone)> {
    let events = &scene.view.events;
    let number = |kind: Kind| events.iter().filter(|event| event.kind == kind).count() as u64;
    let mut facts = vec![(count(events.len() as u64), Tone::Plain)];
    let begun = number(Kind::WaitBegun);
    if begun > 0 {
        facts.push((
            format!("{} waits begun, {} over", count(begun), count(number(Kind::WaitEnded))),
            Tone::Plain,
        ));
    }
    if events.dropped() > 0 {
        facts.push((format!("{} older ones dropped", count(events.dropped())), Tone::Warning));
    }
    facts
}
