use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{SnapshotChange, of, seconds};
use crate::model::event::{self, EventBody, EventKind, Length, harmless};
use crate::model::finding::{Severity, Subject};
use crate::model::task::{Execution, JobState, TaskId, TaskRow, TaskSet};
use crate::model::view::SnapshotView;
use crate::model::work_queue::{ItemId, ItemRow};
use crate::text::count;

/// Snapshots after which a finished execution counts as removed from the log. Finished executions are read at least in
/// every sixth poll.
const POLLS: u32 = 10;

/// Most remembered executions without a known end.
const MOST: usize = 1000;

/// Executions that were running in an earlier snapshot and have ended with an unknown result.
#[derive(Debug, Default)]
pub(super) struct TaskChanges {
    without_end: Vec<WithoutEnd>,
}

#[derive(Debug)]
struct WithoutEnd {
    tables: (u32, Option<u32>),
    execution: Execution,
    polls: u32,
}

impl TaskChanges {
    pub(super) fn compare(&mut self, change: &SnapshotChange<'_>) -> Vec<EventBody> {
        let Some(before) = change.before else { return Vec::new() };
        let mut bodies = Vec::new();
        for new in change.after.snapshot.task_sets.iter() {
            let is_same = |old: &&TaskSet| tables(old) == tables(new);
            if let Some(old) = before.snapshot.task_sets.iter().find(is_same) {
                self.executions(change, old, new, &mut bodies);
                self.ends(change, old, new, &mut bodies);
                switched(change, old, new, &mut bodies);
            }
        }
        states(change, &before.tasks.rows, &mut bodies);
        bodies
    }

    fn executions(
        &self,
        change: &SnapshotChange<'_>,
        old: &TaskSet,
        new: &TaskSet,
        bodies: &mut Vec<EventBody>,
    ) {
        let (old_rows, new_rows) = (old.executions.last_rows(), new.executions.last_rows());
        // The first read of a log yields no events.
        if Arc::ptr_eq(old_rows, new_rows) || old.executions.taken_at.is_none() {
            return;
        }
        let known: FxHashMap<i64, &Execution> = old_rows.iter().map(|row| (row.id, row)).collect();
        // Old rows become visible when newer ones are deleted.
        let newest = known.keys().max().copied();
        for row in new_rows.iter() {
            let body = match known.get(&row.id) {
                Some(before) if before.is_running() && !row.is_running() => ended(change, new, row),
                None if newest.is_none_or(|newest| row.id > newest) && !self.is_without_end(new, row.id) => {
                    if row.is_running() {
                        started(change, new, row)
                    } else {
                        ended(change, new, row)
                    }
                }
                _ => continue,
            };
            bodies.push(body);
        }
    }

    fn is_without_end(&self, set: &TaskSet, id: i64) -> bool {
        self.without_end.iter().any(|gone| gone.execution.id == id && gone.tables == tables(set))
    }

    /// The results of ended executions, whose rows are read less often than those of running ones.
    fn ends(
        &mut self,
        change: &SnapshotChange<'_>,
        old: &TaskSet,
        new: &TaskSet,
        bodies: &mut Vec<EventBody>,
    ) {
        let is_new = !Arc::ptr_eq(old.executions.last_rows(), new.executions.last_rows());
        if is_new && new.knows_running() {
            let there: FxHashSet<i64> = new.executions.last_rows().iter().map(|row| row.id).collect();
            let gone =
                old.executions.last_rows().iter().filter(|row| row.is_running() && !there.contains(&row.id));
            let room = MOST.saturating_sub(self.without_end.len());
            self.without_end.extend(gone.take(room).map(|row| WithoutEnd {
                tables: tables(new),
                execution: row.clone(),
                polls: 0,
            }));
        }
        let of_these = |gone: &&mut WithoutEnd| gone.tables == tables(new);
        if self.without_end.iter_mut().filter(of_these).map(|gone| gone.polls += 1).count() == 0 {
            return;
        }
        let rows: FxHashMap<i64, &Execution> =
            new.executions.last_rows().iter().map(|row| (row.id, row)).collect();
        self.without_end.retain(|gone| {
            if gone.tables != tables(new) {
                return true;
            }
            match rows.get(&gone.execution.id) {
                Some(row) if row.is_running() => false,
                Some(row) => {
                    bodies.push(ended(change, new, row));
                    false
                }
                None if gone.polls > POLLS => {
                    let words = ("was removed from the log", on(&gone.execution), Severity::Info);
                    bodies.push(event_body(change, new, &gone.execution, words));
                    false
                }
                None => true,
            }
        });
    }
}

fn tables(set: &TaskSet) -> (u32, Option<u32>) {
    (set.tables.table, set.tables.log)
}

fn name(set: &TaskSet, task: i64) -> String {
    let name = set.task(task).and_then(|task| task.name.as_deref());
    name.map_or_else(|| format!("task {task}"), str::to_owned)
}

/// `on worker-7`; empty if the row names no worker.
fn on(execution: &Execution) -> String {
    execution.worker.as_ref().map_or_else(String::new, |worker| format!("on {worker}"))
}

fn event_body(
    change: &SnapshotChange<'_>,
    set: &TaskSet,
    row: &Execution,
    words: (&str, String, Severity),
) -> EventBody {
    let (what, more, severity) = words;
    let who = harmless(&name(set, row.task_id));
    EventBody {
        more: harmless(&more),
        subject: Some(Subject::Task(set.task_id(row.task_id))),
        ..of(who, what, change.now(), EventKind::TaskEnded, severity)
    }
}

fn started(change: &SnapshotChange<'_>, set: &TaskSet, row: &Execution) -> EventBody {
    let at = change.moment(row.started_at);
    let body = event_body(change, set, row, ("started", on(row), Severity::Info));
    EventBody { at, kind: EventKind::TaskStarted, ..body }
}

fn ended(change: &SnapshotChange<'_>, set: &TaskSet, row: &Execution) -> EventBody {
    let on = on(row);
    let error = || row.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
    let (kind, words) = match (row.status.as_deref(), &row.recovered_by) {
        (_, Some(by)) => {
            let words = ("was recovered", format!("by {by}, lost {on}"), Severity::Warning);
            (EventKind::TaskRecovered, words)
        }
        (Some("completed"), _) => (EventKind::TaskEnded, ("completed", on, Severity::Info)),
        (Some("failed"), _) => {
            (EventKind::TaskEnded, ("failed", format!("{on}{}", error()), Severity::Warning))
        }
        (status, _) => {
            let status = status.unwrap_or("?");
            (EventKind::TaskEnded, ("ended", format!("{on} as {status}{}", error()), Severity::Info))
        }
    };
    let both = row.started_at.zip(row.completed_at);
    let length = both.map(|(from, to)| Length::Exactly(seconds(from, to)));
    EventBody { at: change.moment(row.completed_at), kind, length, ..event_body(change, set, row, words) }
}

fn switched(change: &SnapshotChange<'_>, old: &TaskSet, new: &TaskSet, bodies: &mut Vec<EventBody>) {
    if Arc::ptr_eq(old.tasks.last_rows(), new.tasks.last_rows()) {
        return;
    }
    for task in new.tasks.last_rows().iter() {
        let was = old.task(task.id).and_then(|task| task.enabled);
        let what = match was.zip(task.enabled) {
            Some((true, false)) => "was disabled",
            Some((false, true)) => "was enabled",
            _ => continue,
        };
        let who = harmless(&name(new, task.id));
        let body = of(who, what, change.now(), EventKind::TaskSwitched, Severity::Info);
        bodies.push(EventBody { subject: Some(Subject::Task(new.task_id(task.id))), ..body });
    }
}

type ExecutionKey = (TaskId, Option<i64>);

/// Changes of states that are not in the rows but follow from the time and from the holder of the key.
fn states(change: &SnapshotChange<'_>, old: &[TaskRow], bodies: &mut Vec<EventBody>) {
    let (before, after) = (change.before.map(|before| before.snapshot), change.after.snapshot);
    let Some(before) = before.filter(|_| !old.is_empty()) else { return };
    let key = |row: &TaskRow, snapshot| -> ExecutionKey {
        (row.task, row.execution(snapshot).map(|execution| execution.id))
    };
    let known: FxHashMap<ExecutionKey, JobState> =
        old.iter().map(|row| (key(row, before), row.state)).collect();
    for row in &change.after.tasks.rows {
        let news = words(row).filter(|_| known.get(&key(row, after)) != Some(&row.state));
        let Some((kind, what, more)) = news else { continue };
        let body = of(harmless(&row.name(after)), what, change.now(), kind, Severity::Warning);
        let subject = Some(Subject::Task(row.task));
        let worker = row.execution(after).map(on).unwrap_or_default();
        bodies.push(EventBody { more: harmless(&format!("{worker}{more}")), subject, ..body });
    }
}

fn words(row: &TaskRow) -> Option<(EventKind, &'static str, String)> {
    let (kind, what, more) = match row.state {
        JobState::Orphan => (EventKind::TaskOrphaned, "was orphaned", ": its session ended"),
        JobState::MaybeOrphan => {
            let more = ": it is recorded as running, but no session holds its key";
            (EventKind::TaskOrphaned, "may be an orphan", more)
        }
        JobState::GivenUp => (EventKind::TaskEnded, "failed for good", ": it will not be started again"),
        JobState::Slow | JobState::MaybeSlow => {
            let more = format!(": it runs for longer than {}", crate::text::duration(row.limit));
            return Some((EventKind::TaskSlow, "became slow", more));
        }
        JobState::Overdue => (EventKind::TaskOverdue, "became overdue", ": no worker has taken it"),
        JobState::Leaked => {
            let more = row.holder.map(|pid| format!(": {pid} holds it but runs nothing"));
            return Some((EventKind::TaskLeaked, "leaked a key", more.unwrap_or_default()));
        }
        _ => return None,
    };
    Some((kind, what, more.to_owned()))
}

/// Most items of one kind per snapshot with an event each; larger numbers have one cause.
const SINGLY: usize = 50;

pub(super) fn compare_items(change: &SnapshotChange<'_>) -> Vec<EventBody> {
    let Some(before) = change.before else { return Vec::new() };
    let mut bodies = became(change, before, JobState::Failed);
    bodies.extend(became(change, before, JobState::Lost));
    bodies
}

fn became(change: &SnapshotChange<'_>, before: SnapshotView<'_>, state: JobState) -> Vec<EventBody> {
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
    let mut bodies: Vec<EventBody> = new.into_iter().map(|row| item_event_body(change, row)).collect();
    if left_out > 0 {
        let (what, kind) = item_words(state);
        let text = format!("{} more queue items {}", count(left_out as u64), event::plural(what));
        let body = EventBody::new(change.now(), kind, Severity::Warning, text);
        bodies.push(EventBody { subject: Some(Subject::Queue), ..body });
    }
    bodies
}

/// Whether the item is new: an old failed item can become visible when a newer one is removed.
fn is_news(change: &SnapshotChange<'_>, before: SnapshotView<'_>, row: &ItemRow) -> bool {
    let Some(item) = row.item(change.after.snapshot) else { return false };
    let was_read = before
        .snapshot
        .sources
        .items
        .iter()
        .any(|table| table.source.table == row.id.table && table.section.taken_at.is_some());
    let ended = item.completed_at.or(item.started_at);
    let is_new = ended.is_none_or(|ended| ended > before.snapshot.taken_at);
    was_read && (row.state == JobState::Lost || is_new)
}

fn item_words(state: JobState) -> (&'static str, EventKind) {
    match state {
        JobState::Lost => ("was lost", EventKind::ItemLost),
        _ => ("was set aside", EventKind::ItemFailed),
    }
}

fn item_event_body(change: &SnapshotChange<'_>, row: &ItemRow) -> EventBody {
    let snapshot = change.after.snapshot;
    let item = row.item(snapshot);
    let (what, kind) = item_words(row.state);
    let ended = item.filter(|_| kind == EventKind::ItemFailed).and_then(|item| item.completed_at);
    let more = match (row.state, item) {
        (JobState::Lost, Some(item)) => {
            item.worker.as_ref().map(|worker| format!(": the session of {worker} ended"))
        }
        (_, Some(item)) => item.error.as_ref().map(|error| format!(": {error}")),
        (_, None) => None,
    };
    EventBody {
        more: more.map_or_else(|| "".into(), |more| harmless(&more)),
        subject: Some(Subject::Item(row.id)),
        ..of(harmless(&row.name(snapshot)), what, change.moment(ended), kind, Severity::Warning)
    }
}
