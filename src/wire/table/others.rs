//! Job systems of others: their jobs that run or are in trouble, their queues, and their leases, worst first.

use super::{columns, more};
use crate::model::Timestamp;
use crate::model::adapter::{JobRow, OtherLeaseRow, QueueRow, QueueState, State, TermState};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::text::{Align, count, duration, one_line};

/// Rows of each that are shown.
const ROWS: usize = 30;

const JOBS: [(&str, Align); 6] = [
    ("STATE", Align::Left),
    ("SOURCE", Align::Left),
    ("JOB", Align::Left),
    ("WORKER", Align::Left),
    ("PROOF", Align::Left),
    ("FOR", Align::Right),
];

const QUEUES: [(&str, Align); 5] = [
    ("STATE", Align::Left),
    ("SOURCE", Align::Left),
    ("QUEUE", Align::Left),
    ("DUE", Align::Right),
    ("OLDEST", Align::Right),
];

const LEASES: [(&str, Align); 6] = [
    ("STATE", Align::Left),
    ("SOURCE", Align::Left),
    ("LEASE", Align::Left),
    ("OWNER", Align::Left),
    ("HELD", Align::Right),
    ("LEFT", Align::Right),
];

/// Nothing where there are no such systems.
pub(super) fn lines(view: &View, snapshot: &Snapshot) -> Vec<String> {
    let board = &view.adapters;
    let jobs: Vec<&JobRow> = board.rows.iter().filter(|row| row.judged.state <= State::Running).collect();
    let queues: Vec<&QueueRow> = board.queues.iter().filter(|row| row.state != QueueState::Open).collect();
    let leases: Vec<&OtherLeaseRow> =
        board.leases.iter().filter(|row| row.state != TermState::Free).collect();
    let mut lines = Vec::new();
    lines.extend(section("Jobs of other systems", &JOBS, &jobs, |row| job(snapshot, row)));
    lines.extend(section("Queues of other systems", &QUEUES, &queues, |row| queue(snapshot, row)));
    lines.extend(section("Leases of other systems", &LEASES, &leases, |row| lease(snapshot, row)));
    lines
}

fn section<R, const N: usize>(
    title: &str,
    heads: &[(&str, Align); N],
    rows: &[&R],
    cells: impl Fn(&R) -> [String; N],
) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), format!("{title}: {}", count(rows.len() as u64))];
    let shown: Vec<[String; N]> = rows.iter().take(ROWS).map(|row| cells(row)).collect();
    lines.extend(columns::laid_out(heads, &shown));
    lines.extend(more(rows.len(), ROWS, "rows"));
    lines
}

fn words(text: Option<&str>) -> String {
    text.map(|text| one_line(text).into_owned()).unwrap_or_default()
}

fn age(snapshot: &Snapshot, since: Option<Timestamp>) -> String {
    since.map_or_else(String::new, |since| duration((snapshot.taken_at - since).as_seconds_f64().max(0.0)))
}

fn job(snapshot: &Snapshot, row: &JobRow) -> [String; 6] {
    let name = row.job.name.as_deref().unwrap_or(&row.job.id);
    [
        row.judged.state.as_str().to_owned(),
        words(Some(&row.source)),
        words(Some(name)),
        words(row.worker.as_deref()),
        row.judged.proof.as_str().to_owned(),
        age(snapshot, row.job.started_at.or(row.job.due_at)),
    ]
}

fn queue(snapshot: &Snapshot, row: &QueueRow) -> [String; 5] {
    let due = row.counts.get("due").map(|due| {
        let more = if due.is_least { "+" } else { "" };
        format!("{}{more}", count(due.number))
    });
    [
        row.state.as_str().to_owned(),
        words(Some(&row.source)),
        words(row.queue.as_deref()),
        due.unwrap_or_default(),
        age(snapshot, row.oldest_at),
    ]
}

fn lease(snapshot: &Snapshot, row: &OtherLeaseRow) -> [String; 6] {
    let (place, at) = row.place;
    let lease = snapshot.adapters.get(place).and_then(|rows| rows.leases.section.rows.get(at));
    let held = lease.and_then(|lease| lease.acquired_at).filter(|_| row.state == TermState::Held);
    let left = match row.left {
        Some(left) if left > 0.0 => duration(left),
        Some(left) => format!("{} ago", duration(-left)),
        None => String::new(),
    };
    [
        row.state.as_str().to_owned(),
        words(Some(&row.source)),
        words(lease.map(|lease| &*lease.id)),
        words(lease.and_then(|lease| lease.owner.as_deref())),
        age(snapshot, held),
        left,
    ]
}
