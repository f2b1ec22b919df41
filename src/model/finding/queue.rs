use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::work_queue::{ItemRow, ItemState};
use crate::text;

/// More lost items than this have one cause, such as the loss of all workers, and are one finding.
const SINGLY: usize = 3;

/// One finding for each lost item while they are few, and one if the oldest pending item is too old.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let lost: Vec<&ItemRow> = look.queue.of_state(ItemState::Lost).collect();
    let mut findings: Vec<Finding> = match lost.as_slice() {
        few if few.len() <= SINGLY => few.iter().map(|row| one(look, row)).collect(),
        many => some(look, many).into_iter().collect(),
    };
    let doubtful: Vec<&ItemRow> = look.queue.rows.iter().filter(|row| is_doubtful(look, row)).collect();
    findings.extend(doubtful.iter().take(LIMIT).map(|row| self::doubtful(look, row)));
    findings.extend(Finding::more("lost_item", doubtful.len().saturating_sub(LIMIT)));
    findings.extend(waiting(look));
    findings
}

/// Perhaps lost, or past its limit according to the table, and nothing more certain is known.
fn is_doubtful(look: &CheckInput<'_>, row: &ItemRow) -> bool {
    let is_over = || row.run(look.snapshot).is_some_and(|run| run > row.limit);
    match row.state {
        ItemState::MaybeLost | ItemState::MaybeSlow => true,
        ItemState::Settling | ItemState::Unknown => is_over(),
        _ => false,
    }
}

/// `queue item 7 recorded as processing for 50m, no session holds its key`
fn doubtful(look: &CheckInput<'_>, row: &ItemRow) -> Finding {
    let (name, worker, _) = words(look, row);
    let run = row.run(look.snapshot).map_or_else(String::new, |run| format!(" for {}", text::duration(run)));
    let why = match (row.state, row.pid) {
        (ItemState::MaybeLost | ItemState::Settling, _) => "no session holds its key".to_owned(),
        (ItemState::MaybeSlow, Some(pid)) => format!("{pid} holds its key; nothing links it to {worker}"),
        (ItemState::MaybeSlow, None) => "a prepared transaction holds its key".to_owned(),
        _ => "not known whether it is running".to_owned(),
    };
    let finding = finding(look, row, &format!("queue {name} recorded as processing{run}, {why}"));
    let help = (row.state == ItemState::MaybeLost).then_some("recover");
    Finding { help, ..finding }
}

/// `queue item 7 (send mail) lost, worker-3 last seen 4m10s ago`: its last heartbeat.
fn one(look: &CheckInput<'_>, row: &ItemRow) -> Finding {
    let (name, worker, age) = words(look, row);
    finding(look, row, &format!("queue {name} lost, {worker} last seen{age} ago"))
}

fn some(look: &CheckInput<'_>, rows: &[&ItemRow]) -> Option<Finding> {
    let first = rows.iter().min_by_key(|row| row.urgency(look.snapshot))?;
    let (name, worker, age) = words(look, first);
    let number = text::count(rows.len() as u64);
    let summary = format!(
        "{number} queue items lost with their worker; the first is {name} of {worker}, last seen{age} ago"
    );
    Some(finding(look, first, &summary).short(format!("{number} queue items lost, first {name}{age}")))
}

fn words(look: &CheckInput<'_>, row: &ItemRow) -> (String, String, String) {
    let snapshot = look.snapshot;
    let item = row.item(snapshot);
    let worker = item.and_then(|item| item.worker.as_deref()).unwrap_or("its session");
    let name = row.name(snapshot);
    let name = text::one_line_prefix(&name, 60);
    let beat = item.and_then(|item| item.heartbeat_at.or(item.started_at));
    (text::fit(&name, 60).into_owned(), text::one_line_prefix(worker, 40).into_owned(), look.age_text(beat))
}

fn finding(look: &CheckInput<'_>, row: &ItemRow, summary: &str) -> Finding {
    let item = row.item(look.snapshot);
    let since = item.and_then(|item| item.heartbeat_at.or(item.started_at));
    let finding = Finding::new("lost_item", Severity::Warning, summary, Subject::Item(row.id));
    Finding { since, help: Some("recover"), ..finding }
}

/// `work queue: 1,204 pending, oldest 25m; 8 in progress`
fn waiting(look: &CheckInput<'_>) -> Option<Finding> {
    let depth = &look.queue.depth;
    let since = depth.oldest_pending_at;
    if !look.is_older(since, look.thresholds.queue_pending) {
        return None;
    }
    let age = look.age_text(since);
    let works = match depth.processing.count {
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
