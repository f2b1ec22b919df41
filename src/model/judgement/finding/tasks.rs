//! Scheduled tasks and queue items.

use super::check_input::CheckInput;
use super::{Finding, SINGLE, Severity, Subject, listed, short, workers};
use crate::model::task::{JobState, TaskRow, evidence};
use crate::model::words;
use crate::model::work_queue::ItemRow;
use crate::text;

/// A task is failing after this many failures in a row.
const FAILING: u32 = 3;

/// One finding for each row that needs attention, and for each overdue task while they are few. A task past its limit
/// according to the log is always reported, even if a session holds its key.
pub(super) fn tasks(input: &CheckInput<'_>) -> Vec<Finding> {
    let board = &input.tasks;
    let mut findings = Vec::new();
    let mut list =
        |is: &dyn Fn(&TaskRow) -> bool, check, finding: fn(&CheckInput<'_>, &TaskRow) -> Finding| {
            let rows = board.rows.iter().filter(|row| is(row));
            findings.extend(listed(check, rows, |row| finding(input, row)));
        };
    list(&|row| row.state == JobState::Orphan, "orphan_task", orphan);
    list(
        &|row| matches!(row.state, JobState::MaybeOrphan | JobState::LeftOver),
        "orphan_task",
        doubtful_task,
    );
    list(&|row| row.state == JobState::Slow, "slow_task", slow);
    list(&|row| is_over(input, row), "slow_task", doubtful_task);
    list(&|row| row.state == JobState::Leaked, "leaked_lock", leaked);
    list(&|row| row.state == JobState::GivenUp, "failed_task", failed);
    list(&|row| is_failing(input, row), "failing_task", failing);
    let mut overdue: Vec<&TaskRow> = board.rows.iter().filter(|row| row.state == JobState::Overdue).collect();
    if !overdue.is_empty() {
        // Unserved tasks have a finding that contains the reason.
        let worker_types = workers::worker_types_of_tasks(input);
        overdue.retain(|row| !workers::is_unserved(input, &worker_types, row));
    }
    if overdue.len() <= SINGLE {
        findings.extend(overdue.iter().map(|row| overdue_one(input, row)));
    } else {
        findings.extend(overdue_many(input, &overdue));
    }
    findings
}

/// Whether it fails repeatedly and is retried: a disabled task is not.
fn is_failing(input: &CheckInput<'_>, row: &TaskRow) -> bool {
    let is_enabled = row.schedule(input.snapshot).is_none_or(|task| task.enabled != Some(false));
    is_enabled && row.state != JobState::GivenUp && row.streak.length >= FAILING
}

/// Past its limit, and nothing more certain is known.
fn is_over(input: &CheckInput<'_>, row: &TaskRow) -> bool {
    let doubtful = matches!(row.state, JobState::MaybeSlow | JobState::Settling | JobState::Unknown);
    doubtful && row.age(input.snapshot).is_some_and(|age| age > row.limit)
}

fn task_finding(input: &CheckInput<'_>, row: &TaskRow, check: &'static str, words: &str) -> Finding {
    let name = text::one_line(&row.name(input.snapshot)).into_owned();
    Finding::new(check, Severity::Warning, format!("{name} {words}"), Subject::Task(row.task))
}

/// `报表生成任务 orphaned, worker-7 last seen 41m02s ago`: since its last heartbeat, or at least since its key was seen free.
fn orphan(input: &CheckInput<'_>, row: &TaskRow) -> Finding {
    let execution = row.execution(input.snapshot);
    let worker = execution.and_then(|execution| execution.worker.as_deref()).unwrap_or("its session");
    let beat = execution.and_then(|execution| execution.heartbeat_at);
    let since = beat.or(row.since);
    let bound = if beat.is_some() { " " } else { " ≥" };
    // At the first snapshot it is only known that no session holds its key.
    let known = since.map(|at| input.age(at)).filter(|age| *age >= 1.0);
    let seen = known.map_or_else(
        || " has ended".to_owned(),
        |age| format!(" last seen{bound}{} ago", text::duration(age)),
    );
    let finding = task_finding(input, row, "orphan_task", &format!("orphaned, {worker}{seen}"));
    Finding { since, help: Some("recover"), ..finding }
}

fn slow(input: &CheckInput<'_>, row: &TaskRow) -> Finding {
    let snapshot = input.snapshot;
    let execution = row.execution(snapshot);
    let worker = execution.and_then(|execution| execution.worker.as_deref());
    let by = worker.map_or_else(String::new, |worker| format!(" on {worker}"));
    let age = text::duration(row.age(snapshot).unwrap_or_default());
    let limit = text::duration(row.limit);
    let finding = task_finding(input, row, "slow_task", &format!("slow: running {age}{by}, limit {limit}"));
    let since = execution.and_then(|execution| execution.started_at);
    Finding { since, help: Some("recover"), ..finding }
}

/// `sync recorded as running for 50m, no session holds key 2: it may start again`
fn doubtful_task(input: &CheckInput<'_>, row: &TaskRow) -> Finding {
    let snapshot = input.snapshot;
    let age = row.age(snapshot).map_or_else(String::new, |age| format!(" for {}", text::duration(age)));
    let is_orphan = row.state == JobState::MaybeOrphan;
    let is_left = row.state == JobState::LeftOver;
    let check = if is_orphan || is_left { "orphan_task" } else { "slow_task" };
    let then = if is_orphan { ": it may start again" } else { "" };
    let why = evidence(row, snapshot);
    let finding = task_finding(input, row, check, &format!("recorded as running{age}, {why}{then}"));
    let name = text::one_line(&row.name(snapshot)).into_owned();
    // Rows left over rank below those that can be recovered.
    let since = row.execution(snapshot).and_then(|execution| execution.started_at).filter(|_| !is_left);
    let help = is_orphan.then_some("recover");
    Finding {
        since,
        help,
        ..finding.short(format!("{name} recorded as running{age}, {}", row.state.as_str()))
    }
}

fn error(input: &CheckInput<'_>, row: &TaskRow) -> String {
    let error = row.last_failed(input.snapshot).and_then(|execution| execution.error.as_deref());
    error.map_or_else(String::new, |error| format!(": {}", text::one_line(error)))
}

fn failed(input: &CheckInput<'_>, row: &TaskRow) -> Finding {
    let finding =
        task_finding(input, row, "failed_task", &format!("failed, no more retries{}", error(input, row)));
    let since = row.last_failed(input.snapshot).and_then(|execution| execution.completed_at);
    let name = text::one_line(&row.name(input.snapshot)).into_owned();
    Finding { since, help: Some("make_due"), ..finding.short(format!("{name} failed, no more retries")) }
}

fn failing(input: &CheckInput<'_>, row: &TaskRow) -> Finding {
    let more = if row.streak.is_open { "at least " } else { "" };
    let times = format!("failed {more}{} times in a row", row.streak.length);
    let finding = task_finding(input, row, "failing_task", &format!("{times}{}", error(input, row)));
    let since = row.last_failed(input.snapshot).and_then(|execution| execution.completed_at);
    let name = text::one_line(&row.name(input.snapshot)).into_owned();
    Finding { since, ..finding.short(format!("{name} {times}")) }
}

fn leaked(input: &CheckInput<'_>, row: &TaskRow) -> Finding {
    let since = input.age_text(row.since);
    let pid = row.holder.map_or_else(|| "a session".to_owned(), |pid| pid.to_string());
    let backend = row.holder.and_then(|pid| input.backend(pid));
    let snapshot = input.snapshot;
    let quoted = |tag| words::quoted(snapshot, &input.lock_names, &tag, backend);
    let what = row.tag.map_or_else(|| "its key".to_owned(), quoted);
    let summary = format!("{pid} holds {what} for{since} but runs nothing: a leaked task lock");
    let finding = Finding::new("leaked_lock", Severity::Warning, summary, Subject::Task(row.task));
    let short = format!("{pid} leaked {what}, held{since}");
    Finding { since: row.since, help: Some("terminate"), ..finding.short(short) }
}

fn overdue_one(input: &CheckInput<'_>, row: &TaskRow) -> Finding {
    let since = row.schedule(input.snapshot).and_then(|task| task.next_run_at);
    let finding = task_finding(
        input,
        row,
        "overdue_task",
        &format!("overdue{}, no worker runs it", input.age_text(since)),
    );
    Finding { since, ..finding }
}

fn overdue_many(input: &CheckInput<'_>, rows: &[&TaskRow]) -> Option<Finding> {
    let snapshot = input.snapshot;
    let due = |row: &&&TaskRow| row.schedule(snapshot).and_then(|task| task.next_run_at);
    let first = rows.iter().min_by_key(|row| (due(row).is_none(), due(row)))?;
    let since = due(&first);
    let name = text::one_line(&first.name(snapshot)).into_owned();
    let number = text::count(rows.len() as u64);
    let age = input.age_text(since);
    let summary = format!("{number} tasks overdue, no worker runs them; the first is {name}{age}");
    let finding = Finding::new("overdue_task", Severity::Warning, summary, Subject::Task(first.task));
    Some(Finding { since, ..finding.short(format!("{number} tasks overdue, first {name}{age}")) })
}

/// One finding for each lost item while they are few, and one if the oldest pending item is too old.
pub(super) fn queue_items(input: &CheckInput<'_>) -> Vec<Finding> {
    let lost: Vec<&ItemRow> = input.queue.of_state(JobState::Lost).collect();
    let mut findings: Vec<Finding> = match lost.as_slice() {
        few if few.len() <= SINGLE => few.iter().map(|row| lost_item(input, row)).collect(),
        many => lost_items(input, many).into_iter().collect(),
    };
    let doubtful = input.queue.rows.iter().filter(|row| is_item_doubtful(input, row));
    findings.extend(listed("lost_item", doubtful, |row| doubtful_item(input, row)));
    findings.extend(queue_pending(input));
    findings
}

/// Perhaps lost, or past its limit according to the table, and nothing more certain is known.
fn is_item_doubtful(input: &CheckInput<'_>, row: &ItemRow) -> bool {
    let is_over = || row.run(input.snapshot).is_some_and(|run| run > row.limit);
    match row.state {
        JobState::MaybeLost | JobState::MaybeSlow => true,
        JobState::Stopping | JobState::Unknown => is_over(),
        _ => false,
    }
}

/// `queue item 7 recorded as processing for 50m, no session holds its key`
fn doubtful_item(input: &CheckInput<'_>, row: &ItemRow) -> Finding {
    let (name, worker, _) = item_words(input, row);
    let run = row.run(input.snapshot).map_or_else(String::new, |run| format!(" for {}", text::duration(run)));
    let why = match (row.state, row.pid) {
        (JobState::MaybeLost | JobState::Stopping, _) => "no session holds its key".to_owned(),
        (JobState::MaybeSlow, Some(pid)) => format!("{pid} holds its key; nothing links it to {worker}"),
        (JobState::MaybeSlow, None) => "a prepared transaction holds its key".to_owned(),
        _ => "not known whether it is running".to_owned(),
    };
    let finding = item_finding(input, row, &format!("queue {name} recorded as processing{run}, {why}"));
    let help = (row.state == JobState::MaybeLost).then_some("recover");
    Finding { help, ..finding }
}

/// `queue item 7 (send mail) lost, worker-3 last seen 4m10s ago`: its last heartbeat.
fn lost_item(input: &CheckInput<'_>, row: &ItemRow) -> Finding {
    let (name, worker, age) = item_words(input, row);
    item_finding(input, row, &format!("queue {name} lost, {worker} last seen{age} ago"))
}

fn lost_items(input: &CheckInput<'_>, rows: &[&ItemRow]) -> Option<Finding> {
    let first = rows.iter().min_by_key(|row| row.urgency(input.snapshot))?;
    let (name, worker, age) = item_words(input, first);
    let number = text::count(rows.len() as u64);
    let summary = format!(
        "{number} queue items lost with their worker; the first is {name} of {worker}, last seen{age} ago"
    );
    Some(item_finding(input, first, &summary).short(format!("{number} queue items lost, first {name}{age}")))
}

fn item_words(input: &CheckInput<'_>, row: &ItemRow) -> (String, String, String) {
    let snapshot = input.snapshot;
    let item = row.item(snapshot);
    let worker = item.and_then(|item| item.worker.as_deref()).unwrap_or("its session");
    let beat = item.and_then(|item| item.heartbeat_at.or(item.started_at));
    (short(&row.name(snapshot), 60), text::one_line_prefix(worker, 40).into_owned(), input.age_text(beat))
}

fn item_finding(input: &CheckInput<'_>, row: &ItemRow, summary: &str) -> Finding {
    let item = row.item(input.snapshot);
    let since = item.and_then(|item| item.heartbeat_at.or(item.started_at));
    let finding = Finding::new("lost_item", Severity::Warning, summary, Subject::Item(row.id));
    Finding { since, help: Some("recover"), ..finding }
}

/// `work queue: 1,204 pending, oldest 25m; 8 in progress`
fn queue_pending(input: &CheckInput<'_>) -> Option<Finding> {
    let depth = &input.queue.depth;
    let since = depth.oldest_pending_at;
    if !input.is_older(since, input.thresholds.queue_pending) {
        return None;
    }
    let age = input.age_text(since);
    let works = match depth.processing.number {
        0 => "none in progress".to_owned(),
        _ => format!("{} in progress", depth.processing),
    };
    let summary = format!("work queue: {} pending, oldest{age}; {works}", depth.pending);
    let finding = Finding::new("queue_pending", Severity::Warning, summary, Subject::Queue);
    Some(Finding {
        since,
        ..finding.short(format!("queue: {} pending, oldest{age}; {works}", depth.pending))
    })
}
