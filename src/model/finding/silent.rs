//! Workers without heartbeats whose session is connected: stopped, swapped out, or hung.
//!
//! A stopped process keeps its connection, and with it the lock: for the server the task runs. Workers of the schema send a
//! heartbeat every few seconds; one without a heartbeat for the grace period of an orphan is reported, but never as an
//! orphan.

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::Timestamp;
use crate::model::task::TaskState;
use crate::model::work_queue::ItemState;
use crate::text;

const SHORT: usize = 40;

struct Silent<'a> {
    what: String,
    subject: Subject,
    worker: Option<&'a str>,
    pid: Option<i32>,
    beat: Timestamp,
}

pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tasks(look).chain(items(look)).map(|one| finding(look, &one)).collect();
    let more = Finding::more("silent_worker", findings.len().saturating_sub(LIMIT));
    findings.truncate(LIMIT);
    findings.extend(more);
    findings
}

fn silent(look: &CheckInput<'_>, beat: Option<Timestamp>) -> Option<Timestamp> {
    beat.filter(|beat| look.age(*beat) >= look.thresholds.orphan_grace)
}

fn tasks<'a>(look: &'a CheckInput<'a>) -> impl Iterator<Item = Silent<'a>> {
    let snapshot = look.snapshot;
    let running = look.tasks.rows.iter().filter(|row| row.state == TaskState::Running);
    running.filter_map(move |row| {
        let execution = row.execution(snapshot)?;
        row.set(snapshot).filter(|set| set.tables.own_keys)?;
        Some(Silent {
            what: text::one_line_prefix(&row.name(snapshot), SHORT * 2).into_owned(),
            subject: Subject::Task(row.task),
            worker: execution.worker.as_deref(),
            pid: row.holder,
            beat: silent(look, execution.heartbeat_at)?,
        })
    })
}

fn items<'a>(look: &'a CheckInput<'a>) -> impl Iterator<Item = Silent<'a>> {
    let snapshot = look.snapshot;
    let running = look.queue.rows.iter().filter(|row| row.state == ItemState::Running);
    running.filter_map(move |row| {
        let item = row.item(snapshot)?;
        snapshot.systems.items.get(row.table).filter(|table| table.source.own_keys)?;
        Some(Silent {
            what: format!("queue {}", text::one_line_prefix(&row.name(snapshot), SHORT * 2)),
            subject: Subject::Item(row.id),
            worker: item.worker.as_deref(),
            pid: row.pid,
            beat: silent(look, item.heartbeat_at)?,
        })
    })
}

/// `long job runs on w3, without a heartbeat for 5m44s: stopped or hung`
fn finding(look: &CheckInput<'_>, one: &Silent<'_>) -> Finding {
    let what = text::fit(&one.what, SHORT);
    let worker = text::one_line_prefix(one.worker.unwrap_or("its worker"), SHORT * 2);
    let worker = text::fit(&worker, SHORT);
    let age = text::duration(look.age(one.beat));
    let summary = format!("{what} runs on {worker}, without a heartbeat for {age}: stopped or hung");
    let pid = one.pid.map_or_else(|| "its session".to_owned(), |pid| format!("its session {pid}"));
    let about =
        format!("{pid} is alive and holds its lock: no other worker can run it until that session ends");
    let finding = Finding::new("silent_worker", Severity::Warning, summary, one.subject);
    Finding { since: Some(one.beat), ..finding.short(format!("{what}: {worker} silent {age}")).about(about) }
}
