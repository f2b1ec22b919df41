//! `snapshot --watch`: one line per snapshot, and the events between them.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use super::rows::Time;
use super::{harmless, rows};
use crate::model::event::Event;
use crate::model::view::{Link, View};

#[derive(Serialize)]
struct Look<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    seq: u64,
    #[serde(skip_serializing_if = "is_zero")]
    skipped: u64,
    #[serde(flatten)]
    document: super::Document<'a>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct EventLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    number: u64,
    at: Time,
    event: &'a str,
    severity: &'static str,
    text: String,
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct LinkLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    state: &'static str,
    reason: Option<&'a str>,
}

/// The snapshot of a view as a line; `None` before the first.
///
/// # Errors
/// As for [`super::to_string`].
pub fn look(view: &View, seq: u64, skipped: u64) -> Option<Result<String, serde_json::Error>> {
    let snapshot = view.snapshot.as_deref()?;
    let document = super::document(view, snapshot);
    Some(harmless::to_string(&Look { kind: "look", seq, skipped, document }))
}

pub fn event(event: &Event) -> Result<String, serde_json::Error> {
    harmless::to_string(&EventLine {
        kind: "event",
        number: event.number,
        at: Time(event.at),
        event: event.kind.as_str(),
        severity: rows::severity(event.severity),
        text: event.text(),
        seconds: event.length.map(crate::model::event::Length::seconds),
    })
}

pub fn link(link: &Link) -> Result<String, serde_json::Error> {
    let (state, reason) = match link {
        Link::Connecting => ("connecting", None),
        Link::Live => ("live", None),
        Link::Down { reason, .. } => ("down", Some(&**reason)),
    };
    harmless::to_string(&LinkLine { kind: "link", state, reason })
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
