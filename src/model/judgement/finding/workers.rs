//! Workers of the schema: those without heartbeats, and work that none of them takes.

use std::collections::BTreeMap;

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject, listed};
use crate::model::Timestamp;
use crate::model::task::{JobState, TaskRow};
use crate::model::work_queue::ItemRow;
use crate::model::worker_types::{WorkKind, WorkerTypes};
use crate::text;

/// Maximum characters of a name (`SHORT`), and of all types that workers take (`TYPES`).
const SHORT: usize = 40;
const TYPES: usize = 200;

/// Workers without heartbeats whose session is connected: stopped, swapped out, or hung.
///
/// A stopped process keeps its connection, and with it the lock: for the server the task runs. Workers of the schema send a
/// heartbeat every few seconds; one without a heartbeat for the grace period of an orphan is reported, but never as an
/// orphan.
pub(super) fn silent_workers(input: &CheckInput<'_>) -> Vec<Finding> {
    let snapshot = input.snapshot;
    let tasks = input.tasks.rows.iter().filter(|row| row.state == JobState::Running).filter_map(|row| {
        let execution = row.execution(snapshot)?;
        row.set(snapshot).filter(|set| set.tables.own_keys)?;
        let what = text::one_line_prefix(&row.name(snapshot), SHORT * 2).into_owned();
        let worker = (execution.worker.as_deref(), row.holder);
        silent(input, (&what, Subject::Task(row.task)), worker, execution.heartbeat_at)
    });
    let items = input.queue.rows.iter().filter(|row| row.state == JobState::Running).filter_map(|row| {
        let item = row.item(snapshot)?;
        snapshot.sources.items.get(row.table).filter(|table| table.source.own_keys)?;
        let what = format!("queue {}", text::one_line_prefix(&row.name(snapshot), SHORT * 2));
        let worker = (item.worker.as_deref(), row.pid);
        silent(input, (&what, Subject::Item(row.id)), worker, item.heartbeat_at)
    });
    listed("silent_worker", tasks.chain(items), |finding| finding)
}

/// `long job runs on w3, without a heartbeat for 5m44s: stopped or hung`
fn silent(
    input: &CheckInput<'_>,
    (what, subject): (&str, Subject),
    (worker, pid): (Option<&str>, Option<i32>),
    beat: Option<Timestamp>,
) -> Option<Finding> {
    let silence = input.age(beat?);
    if silence < input.thresholds.orphan_grace {
        return None;
    }
    let what = text::fit(what, SHORT);
    let worker = text::one_line_prefix(worker.unwrap_or("its worker"), SHORT * 2);
    let worker = text::fit(&worker, SHORT);
    let age = text::duration(silence);
    let summary = format!("{what} runs on {worker}, without a heartbeat for {age}: stopped or hung");
    let pid = pid.map_or_else(|| "its session".to_owned(), |pid| format!("its session {pid}"));
    let about =
        format!("{pid} is alive and holds its lock: no other worker can run it until that session ends");
    let finding = Finding::new("silent_worker", Severity::Warning, summary, subject);
    let short = format!("{what}: {worker} silent {age}");
    Some(Finding { since: beat, ..finding.short(short).about(about) })
}

/// One finding for each type of task and of item that is due and that none of the schema's workers takes.
pub(super) fn unserved_types(input: &CheckInput<'_>) -> Vec<Finding> {
    listed("unserved_type", unserved_tasks(input).into_iter().chain(unserved_items(input)), |finding| finding)
}

/// For each of the snapshot's task tables, the types that workers take. None if not known.
pub(super) fn worker_types_of_tasks(input: &CheckInput<'_>) -> Vec<Option<WorkerTypes>> {
    let of = |name: &str| WorkerTypes::of(input.snapshot, &input.index, name, WorkKind::Tasks);
    let sets = input.snapshot.task_sets.iter();
    sets.map(|set| set.tables.own_keys.then(|| of(&set.tables.schedules)).flatten()).collect()
}

pub(super) fn is_unserved(
    input: &CheckInput<'_>,
    worker_types: &[Option<WorkerTypes>],
    row: &TaskRow,
) -> bool {
    let worker_types = worker_types.get(row.set).and_then(Option::as_ref);
    row.state == JobState::Overdue
        && worker_types.is_some_and(|worker_types| !worker_types.takes(kind_of(input, row)))
}

fn kind_of<'a>(input: &CheckInput<'a>, row: &TaskRow) -> Option<&'a str> {
    row.schedule(input.snapshot).and_then(|task| task.kind.as_deref())
}

fn unserved_tasks(input: &CheckInput<'_>) -> Vec<Finding> {
    let snapshot = input.snapshot;
    let mut overdue = input.tasks.rows.iter().filter(|row| row.state == JobState::Overdue).peekable();
    if overdue.peek().is_none() {
        return Vec::new();
    }
    let worker_types = worker_types_of_tasks(input);
    let mut groups: BTreeMap<_, Vec<&TaskRow>> = BTreeMap::new();
    for row in overdue.filter(|row| is_unserved(input, &worker_types, row)) {
        groups.entry((row.set, kind_of(input, row))).or_default().push(row);
    }
    let due = |row: &TaskRow| row.schedule(snapshot).and_then(|task| task.next_run_at);
    let finding = |((set, kind), rows): ((usize, _), Vec<&TaskRow>)| {
        let first = rows.iter().min_by_key(|row| (due(row).is_none(), due(row)))?;
        let since = due(first);
        let (name, age) = (text::one_line(&first.name(snapshot)).into_owned(), input.age_text(since));
        let what = type_text(kind);
        let summary = match rows.len() {
            1 => format!("{name} overdue{age}: no worker takes {what}"),
            count => {
                let count = text::count(count as u64);
                format!("{count} tasks of {what} overdue, the first, {name},{age}: no worker takes them")
            }
        };
        let worker_types = worker_types.get(set)?.as_ref()?;
        Some(unserved_finding(summary, Subject::Task(first.task), since, (kind, worker_types)))
    };
    groups.into_iter().filter_map(finding).collect()
}

fn unserved_items(input: &CheckInput<'_>) -> Vec<Finding> {
    let snapshot = input.snapshot;
    let since = |row: &ItemRow| row.item(snapshot).and_then(|item| item.due_at.or(item.created_at));
    let is_late = |row: &&ItemRow| {
        row.state == JobState::Pending && input.is_older(since(row), input.thresholds.task_overdue)
    };
    let mut late: BTreeMap<usize, Vec<&ItemRow>> = BTreeMap::new();
    for row in input.queue.rows.iter().filter(is_late) {
        late.entry(row.table).or_default().push(row);
    }
    // Only the oldest pending items are read.
    let is_pending = |row: &&ItemRow| matches!(row.state, JobState::Pending | JobState::Resting);
    let (read, pending) = (input.queue.rows.iter().filter(is_pending).count(), input.queue.depth.pending);
    let is_all = !pending.is_least && pending.number <= read as u64;
    let mut findings = Vec::new();
    for (table, rows) in late {
        let Some(source) = snapshot.sources.items.get(table).map(|table| &table.source) else { continue };
        let worker_types =
            source.own_keys.then(|| WorkerTypes::of(snapshot, &input.index, &source.name, WorkKind::Items));
        let Some(worker_types) = worker_types.flatten() else { continue };
        let kind = |row: &&ItemRow| row.item(snapshot).and_then(|item| item.name.clone());
        let mut groups: BTreeMap<_, Vec<&ItemRow>> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| !worker_types.takes(kind(row).as_deref())) {
            groups.entry(kind(&row)).or_default().push(row);
        }
        for (kind, rows) in groups {
            let Some(first) = rows.iter().min_by_key(|row| since(row)) else { continue };
            let (id, what, age) = (first.id, type_text(kind.as_deref()), input.age_text(since(first)));
            let summary = match rows.len() {
                1 => format!("queue item {} of {what} due{age}: no worker takes it", id.id),
                count => {
                    let more = if is_all { "" } else { " or more" };
                    format!("{count}{more} queue items of {what} due, the first{age}: no worker takes them")
                }
            };
            // An idle worker of the application's own that has not registered its types may take them: it is visible only while it
            // works.
            let finding =
                unserved_finding(summary, Subject::Item(id), since(first), (kind.as_deref(), &worker_types));
            findings.push(Finding { severity: Severity::Info, ..finding });
        }
    }
    findings
}

fn type_text(kind: Option<&str>) -> String {
    match kind {
        Some(kind) => format!("type {}", text::fit(&text::one_line_prefix(kind, SHORT * 2), SHORT)),
        None => "no type".to_owned(),
    }
}

fn unserved_finding(
    summary: String,
    subject: Subject,
    since: Option<crate::model::Timestamp>,
    (kind, worker_types): (Option<&str>, &WorkerTypes),
) -> Finding {
    let types = worker_types.types.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let types = text::fit(&text::one_line_prefix(&types, TYPES * 2), TYPES).into_owned();
    let about = match worker_types.workers {
        1 => format!("the one worker takes {types}"),
        count => format!("{count} workers take {types}"),
    };
    // A type of locktop's own worker, up to 0.1.0.
    let removed =
        if kind == Some("http") { "; the type http was removed: use type command with curl" } else { "" };
    let about = format!("{about}{removed}");
    let finding = Finding::new("unserved_type", Severity::Warning, summary, subject).about(about);
    Finding { since, ..finding }
}
