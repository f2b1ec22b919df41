//! Leases that were acquired, expired, were released or changed owner.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{SnapshotChange, of, seconds};
use crate::model::event::{EventBody, EventKind, Length, harmless};
use crate::model::finding::{Severity, Subject};
use crate::model::lease::{LeaseId, LeaseRow, LeaseState, REDIS};
use crate::model::snapshot::Snapshot;
use crate::model::{Text, Timestamp};

pub(super) fn compare(change: &SnapshotChange<'_>) -> Vec<EventBody> {
    let Some(before) = change.before else { return Vec::new() };
    let (old, new) = (&before.leases.rows, &change.after.leases.rows);
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    let was_read = sources(before.snapshot);
    let is_read = sources(change.after.snapshot);
    let mut known: FxHashMap<LeaseId, &LeaseRow> = old.iter().map(|row| (row.id, row)).collect();
    let mut bodies = Vec::new();
    for row in new {
        match known.remove(&row.id) {
            Some(old) => bodies.extend(changed(change, old, row)),
            // Rows that existed before the table was first read are not events.
            None if is_held(row) && was_read.contains(&row.source) => bodies.push(taken(change, row)),
            None => {}
        }
    }
    let gone = old.iter().filter(|row| known.contains_key(&row.id));
    let gone = gone.filter(|row| is_held(row) && is_read.contains(&row.source));
    bodies.extend(gone.map(|row| ended(change, row)));
    bodies
}

/// The sources that were read completely: a row missing there does not exist.
fn sources(snapshot: &Snapshot) -> FxHashSet<Text> {
    let tables = snapshot.sources.leases.iter().filter(|table| {
        table.section.error.is_none() && table.section.taken_at.is_some() && !table.section.is_cut
    });
    let redis = &snapshot.sources.redis;
    let has_redis = redis.read_at.is_some() && redis.down() == 0 && !redis.cut;
    tables.map(|table| Text::clone(&table.source.name)).chain(has_redis.then(|| REDIS.into())).collect()
}

fn is_held(row: &LeaseRow) -> bool {
    matches!(row.state, LeaseState::Held | LeaseState::Expired)
}

fn owner(row: &LeaseRow) -> &str {
    row.owner.as_deref().unwrap_or("no owner")
}

/// `, token 13`; empty if the table has no token.
fn token(row: &LeaseRow) -> String {
    row.token.map_or_else(String::new, |token| format!(", token {token}"))
}

fn event_body(row: &LeaseRow, at: Timestamp, kind: EventKind, (what, more): (&str, String)) -> EventBody {
    let severity = if kind == EventKind::LeaseExpired { Severity::Warning } else { Severity::Info };
    let who = harmless(&format!("lease {} in {}", row.name, row.source));
    let body = of(who, what, at, kind, severity);
    EventBody { more: harmless(&more), subject: Some(Subject::Lease(row.id)), ..body }
}

fn taken(change: &SnapshotChange<'_>, row: &LeaseRow) -> EventBody {
    let at = change.moment(row.acquired_at.or(row.renewed_at));
    event_body(row, at, EventKind::LeaseTaken, ("was acquired", format!("by {}{}", owner(row), token(row))))
}

fn changed(change: &SnapshotChange<'_>, old: &LeaseRow, new: &LeaseRow) -> Option<EventBody> {
    use LeaseState::{Expired, Held};
    let is_same = old.owner == new.owner && old.token == new.token;
    match (old.state, new.state) {
        (Held, Expired) if is_same => Some(expired(change, new)),
        (Expired, Held) if is_same => {
            let words = ("was renewed late", format!("by {}", owner(new)));
            Some(event_body(new, change.moment(new.renewed_at), EventKind::LeaseTaken, words))
        }
        (Held | Expired, Held | Expired) if !is_same => Some(passed(change, old, new)),
        (Held | Expired, LeaseState::Released | LeaseState::Free) => Some(released(change, old, new)),
        (LeaseState::Released | LeaseState::Free, Held) => Some(taken(change, new)),
        // Acquired and expired between two snapshots.
        (LeaseState::Released | LeaseState::Free, Expired) => Some(expired(change, new)),
        _ => None,
    }
}

fn expired(change: &SnapshotChange<'_>, row: &LeaseRow) -> EventBody {
    let length = row.acquired_at.zip(row.expires_at);
    let length = length.map(|(from, to)| Length::Exactly(seconds(from, to)));
    let words = ("expired", format!(": {} did not release it", owner(row)));
    EventBody { length, ..event_body(row, change.moment(row.expires_at), EventKind::LeaseExpired, words) }
}

fn passed(change: &SnapshotChange<'_>, old: &LeaseRow, new: &LeaseRow) -> EventBody {
    let at = change.moment(new.acquired_at.or(new.renewed_at));
    let tokens = match (old.token, new.token) {
        (Some(old), Some(new)) if old != new => format!(", token {old} to {new}"),
        _ => token(new),
    };
    let words = if old.owner == new.owner {
        ("was acquired again", format!("by {}{tokens}", owner(new)))
    } else {
        ("changed owner", format!(": {} to {}{tokens}", owner(old), owner(new)))
    };
    event_body(new, at, EventKind::LeaseChanged, words)
}

fn released(change: &SnapshotChange<'_>, old: &LeaseRow, new: &LeaseRow) -> EventBody {
    let now = change.now();
    let length = old.acquired_at.map(|from| Length::AtMost(seconds(from, now)));
    // The row does not show whether the owner released it or another session unlocked it.
    let words = ("is free again", format!("; it was held by {}", owner(old)));
    EventBody { length, ..event_body(new, now, EventKind::LeaseReleased, words) }
}

fn ended(change: &SnapshotChange<'_>, row: &LeaseRow) -> EventBody {
    let now = change.now();
    let length = row.acquired_at.map(|from| Length::AtMost(seconds(from, now)));
    // A Redis key disappears when it is deleted or expires. If it was missing before its expiry, it was deleted.
    let read_at = change.after.snapshot.sources.redis.read_at;
    let is_over = row.expires_at.zip(read_at).is_some_and(|(end, read_at)| end <= read_at);
    let what = match &*row.source == REDIS {
        false => "was removed",
        true if is_over => "expired, or was released just before",
        true => "was released",
    };
    let words = (what, format!("; it was held by {}", owner(row)));
    EventBody { length, ..event_body(row, now, EventKind::LeaseReleased, words) }
}
