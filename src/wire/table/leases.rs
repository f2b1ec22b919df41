//! The leases, those that expired first.

use super::{columns, more, unread};
use crate::model::lease::{LeaseRow, LeaseState};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::text::{Align, count, duration, one_line};

/// Leases that are shown.
const ROWS: usize = 50;

const HEADS: [(&str, Align); 7] = [
    ("STATE", Align::Left),
    ("LEASE", Align::Left),
    ("OWNER", Align::Left),
    ("LEFT", Align::Right),
    ("TERM", Align::Right),
    ("TOKEN", Align::Right),
    ("SOURCE", Align::Left),
];

/// Nothing where there are no leases, and no tables for them.
pub(super) fn lines(view: &View, snapshot: &Snapshot) -> Vec<String> {
    let board = &view.leases;
    let redis = &snapshot.systems.redis;
    if snapshot.systems.leases.is_empty() && redis.servers.is_empty() && board.rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(unread("Leases", &snapshot.systems.leases));
    if board.rows.is_empty() {
        if lines.len() == 1 {
            lines.push("No leases.".to_owned());
        }
        return lines;
    }
    let numbers = LeaseState::ALL.iter().filter(|state| board.counts.of(**state) > 0);
    let numbers: Vec<String> =
        numbers.map(|state| format!("{} {}", board.counts.of(*state), state.as_str())).collect();
    let total = count(board.rows.len() as u64);
    lines.push(format!("Leases: {total} · {}", numbers.join(" · ")));
    let mut leases: Vec<&LeaseRow> = board.rows.iter().collect();
    leases.sort_by(|a, b| a.urgency(b));
    let rows: Vec<[String; 7]> = leases.iter().take(ROWS).map(|row| cells(row)).collect();
    lines.extend(columns::laid_out(&HEADS, &rows));
    lines.extend(more(leases.len(), ROWS, "leases"));
    lines
}

fn cells(row: &LeaseRow) -> [String; 7] {
    let is_owned = matches!(row.state, LeaseState::Held | LeaseState::Expired);
    let left = match row.left.filter(|_| is_owned) {
        Some(seconds) if seconds > 0.0 => duration(seconds),
        Some(seconds) => format!("{} ago", duration(-seconds)),
        None => String::new(),
    };
    [
        row.state.as_str().to_owned(),
        one_line(&row.name).into_owned(),
        row.owner.as_deref().map(|owner| one_line(owner).into_owned()).unwrap_or_default(),
        left,
        row.term.map(duration).unwrap_or_default(),
        row.token.map(|token| token.to_string()).unwrap_or_default(),
        one_line(&row.shown_source()).into_owned(),
    ]
}
