//! The work queue: how deep it is, and the items that somebody should see.

use super::{columns, more, unread};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::model::work_queue::ItemRow;
use crate::text::{Align, duration, one_line};

/// Items that are shown.
const ROWS: usize = 50;

const HEADS: [(&str, Align); 6] = [
    ("STATE", Align::Left),
    ("ITEM", Align::Right),
    ("NAME", Align::Left),
    ("WORKER", Align::Left),
    ("RUN", Align::Right),
    ("PID", Align::Right),
];

/// Nothing where there is no table.
pub(super) fn lines(view: &View, snapshot: &Snapshot) -> Vec<String> {
    if snapshot.systems.counts.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(unread("Work queue", &snapshot.systems.counts));
    if lines.len() > snapshot.systems.counts.len() {
        return lines;
    }
    let depth = &view.queue.depth;
    let mut facts = vec![
        format!("{} pending", depth.pending),
        format!("{} processing", depth.processing),
        format!("{} completed", depth.completed),
        format!("{} failed", depth.failed),
    ];
    let age = depth.oldest_pending_at.map(|at| (snapshot.taken_at - at).as_seconds_f64());
    facts.extend(age.map(|age| format!("oldest pending {}", duration(age))));
    facts.extend(depth.per_minute.map(|rate| format!("{rate} completed within a minute")));
    lines.push(format!("Work queue: {}", facts.join(" · ")));
    let mut items: Vec<&ItemRow> = view.queue.rows.iter().collect();
    items.sort_by_key(|row| row.urgency(snapshot));
    if !items.is_empty() {
        let rows: Vec<[String; 6]> = items.iter().take(ROWS).map(|row| cells(snapshot, row)).collect();
        lines.extend(columns::laid_out(&HEADS, &rows));
        lines.extend(more(items.len(), ROWS, "items"));
    }
    lines
}

fn cells(snapshot: &Snapshot, row: &ItemRow) -> [String; 6] {
    let item = row.item(snapshot);
    let words =
        |text: Option<&crate::model::Text>| text.map(|text| one_line(text).into_owned()).unwrap_or_default();
    [
        row.state.as_str().to_owned(),
        row.id.id.to_string(),
        words(item.and_then(|item| item.name.as_ref())),
        words(item.and_then(|item| item.worker.as_ref())),
        row.run(snapshot).map(duration).unwrap_or_default(),
        row.pid.map(|pid| pid.to_string()).unwrap_or_default(),
    ]
}
