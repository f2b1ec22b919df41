//! `snapshot --watch`: one line per snapshot, and the events between them.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::object::{self, Object, Writer, object};
use crate::model::event::{Event, Length};
use crate::model::view::{Link, View};

/// The snapshot of a view as a line; `None` before the first.
///
/// # Errors
/// As for [`super::to_string`].
pub fn look(view: &View, seq: u64, skipped: u64) -> Option<Result<String, serde_json::Error>> {
    let snapshot = view.snapshot.as_deref()?;
    let document = super::document(view, snapshot);
    Some(object::text(&Object(|to: &mut Writer| {
        object!(type = "look", seq).keys(to)?;
        if skipped > 0 {
            to.field("skipped", &skipped)?;
        }
        document.keys(to)
    })))
}

pub fn event(event: &Event) -> Result<String, serde_json::Error> {
    object::text(&object!(
        event;
        type = "event",
        number,
        at,
        event = event.kind,
        severity,
        text = event.text(),
        seconds = event.length.map(Length::seconds),
    ))
}

pub fn link(link: &Link) -> Result<String, serde_json::Error> {
    let (state, reason) = match link {
        Link::Connecting => ("connecting", None),
        Link::Live => ("live", None),
        Link::Down { reason, .. } => ("down", Some(reason)),
    };
    object::text(&object!(type = "link", state, reason))
}

/// Hash of a snapshot without its times: who waits for whom, the states of tasks, leases and items, and the findings.
pub fn fingerprint(view: &View) -> u64 {
    let mut hasher = DefaultHasher::new();
    for queue in &view.graph.queues {
        queue.tag.hash(&mut hasher);
        queue.holders.iter().for_each(|holder| holder.party.hash(&mut hasher));
        queue.waiters.iter().for_each(|waiter| (waiter.party, waiter.pid, waiter.mode).hash(&mut hasher));
    }
    view.tasks.rows.iter().for_each(|row| (row.task, row.again, row.state).hash(&mut hasher));
    view.leases.rows.iter().for_each(|row| (row.state as u8).hash(&mut hasher));
    view.queue.rows.iter().for_each(|row| (row.state as u8).hash(&mut hasher));
    for finding in view.findings.iter() {
        (finding.check, finding.severity as u8, finding.blocked).hash(&mut hasher);
    }
    hasher.finish()
}
