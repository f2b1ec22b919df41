//! Items of the work queue that failed or lost their worker.

use rustc_hash::FxHashSet;

use super::{Change, of};
use crate::model::event::{self, Draft, Kind, harmless};
use crate::model::finding::{Severity, Subject};
use crate::model::view::SnapshotView;
use crate::model::work_queue::{ItemId, ItemRow, ItemState};
use crate::text::count;

/// Most items of one kind per snapshot with an event each; larger numbers have one cause.
const SINGLY: usize = 50;

pub(super) fn look(change: &Change<'_>) -> Vec<Draft> {
    let Some(before) = change.before else { return Vec::new() };
    let mut drafts = became(change, before, ItemState::Failed);
    drafts.extend(became(change, before, ItemState::Lost));
    drafts
}

fn became(change: &Change<'_>, before: SnapshotView<'_>, state: ItemState) -> Vec<Draft> {
    if change.after.queue.of_state(state).next().is_none() {
        return Vec::new();
    }
    let known: FxHashSet<ItemId> = before.queue.of_state(state).map(|row| row.id).collect();
    let mut new: Vec<&ItemRow> = change
        .after
        .queue
        .of_state(state)
        .filter(|row| !known.contains(&row.id) && is_news(change, before, row))
        .collect();
    let left_out = new.len().saturating_sub(SINGLY);
    new.truncate(SINGLY);
    let mut drafts: Vec<Draft> = new.into_iter().map(|row| draft(change, row)).collect();
    if left_out > 0 {
        let (what, kind, severity) = words(state);
        let text = format!("{} more queue items {}", count(left_out as u64), event::plural(what));
        drafts
            .push(Draft { subject: Some(Subject::Queue), ..Draft::new(change.now(), kind, severity, text) });
    }
    drafts
}

/// Whether the item is new: an old failed item can become visible when a newer one is removed.
fn is_news(change: &Change<'_>, before: SnapshotView<'_>, row: &ItemRow) -> bool {
    let Some(item) = row.item(change.after.snapshot) else { return false };
    let was_read = before
        .snapshot
        .systems
        .items
        .iter()
        .any(|table| table.source.table == row.id.table && table.section.taken_at.is_some());
    let ended = item.completed_at.or(item.started_at);
    let is_new = ended.is_none_or(|ended| ended > before.snapshot.taken_at);
    was_read && (row.state == ItemState::Lost || is_new)
}

fn words(state: ItemState) -> (&'static str, Kind, Severity) {
    match state {
        ItemState::Lost => ("was lost", Kind::ItemLost, Severity::Warning),
        _ => ("was set aside", Kind::ItemFailed, Severity::Warning),
    }
}

fn draft(change: &Change<'_>, row: &ItemRow) -> Draft {
    let snapshot = change.after.snapshot;
    let item = row.item(snapshot);
    let (what, kind, severity) = words(row.state);
    let ended = item.filter(|_| kind == Kind::ItemFailed).and_then(|item| item.completed_at);
    let more = match (row.state, item) {
        (ItemState::Lost, Some(item)) => {
            item.worker.as_ref().map(|worker| format!(": the session of {worker} ended"))
        }
        (_, Some(item)) => item.error.as_ref().map(|error| format!(": {error}")),
        (_, None) => None,
    };
    Draft {
        more: more.map_or_else(|| "".into(), |more| harmless(&more)),
        subject: Some(Subject::Item(row.id)),
        ..of(harmless(&row.name(snapshot)), what, change.moment(ended), kind, severity)
    }
}
