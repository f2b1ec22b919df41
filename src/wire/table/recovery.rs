//! A recovery for people: the plan as a table, each result as a line.

use std::fmt::Write as _;

use super::columns;
use crate::model::plan::{Outcome, Planned, RecoveryPlan, RecoveryResult, RunState};
use crate::text::{Align, duration, one_line};

const HEADS: [(&str, Align); 8] = [
    ("EXECUTION", Align::Right),
    ("TASK", Align::Left),
    ("WORKER", Align::Left),
    ("STATE", Align::Left),
    ("RUN", Align::Right),
    ("LIMIT", Align::Right),
    ("PID", Align::Right),
    ("WHAT WILL BE DONE", Align::Left),
];

/// The plan, one line each row; for one without rows, what there is beside.
#[must_use]
pub fn plan(plan: &RecoveryPlan) -> Vec<String> {
    if plan.rows.is_empty() {
        return vec![nothing(plan)];
    }
    let rows: Vec<[String; 8]> = plan.rows.iter().map(|row| cells(row, plan.grace)).collect();
    columns::laid_out(HEADS, &rows)
}

fn cells(row: &Planned, grace: f64) -> [String; 8] {
    let seen = &row.seen;
    let long = |seconds: Option<f64>| seconds.map(duration).unwrap_or_default();
    // Whoever holds the key; else who did.
    let pid = seen.holder_pid.map(|pid| pid.to_string());
    let gone = || seen.backend_pid.filter(|_| seen.state == RunState::Orphan).map(|pid| format!("({pid})"));
    [
        seen.execution_id.to_string(),
        one_line(&seen.task_name).into_owned(),
        one_line(&seen.worker_id).into_owned(),
        seen.state.as_str().to_owned(),
        long(seen.run_seconds),
        long(seen.timeout_seconds),
        pid.or_else(gone).unwrap_or_default(),
        row.effect(grace),
    ]
}

/// Why there is nothing to do.
fn nothing(plan: &RecoveryPlan) -> String {
    let mut text = "Nothing to recover.".to_owned();
    let others = &plan.others;
    let grace = duration(plan.grace);
    for (number, what) in [
        (others.slow, "past its timeout, with its key held (--timeout)".to_owned()),
        (others.settling, format!("whose key is free for less than the grace of {grace}")),
        (others.unknown, "of which it cannot be told whether it runs".to_owned()),
    ] {
        if number > 0 {
            let _ = write!(text, " Beside: {number} {what}.");
        }
    }
    text
}

/// What came of one execution, on one line.
#[must_use]
pub fn result(plan: &RecoveryPlan, result: &RecoveryResult) -> String {
    let row = plan.rows.iter().find(|row| row.seen.execution_id == result.execution_id);
    let name = row.map(|row| one_line(&row.seen.task_name).into_owned()).unwrap_or_default();
    let word = result.outcome.as_str().replace('_', " ");
    let mut text = format!("{name} (execution {}): {word}", result.execution_id);
    match (result.outcome, result.next_run_at) {
        (Outcome::Recovered | Outcome::GaveUp, Some(at)) => {
            let _ = write!(text, ", runs next at {}", at.format("%Y-%m-%d %H:%M:%S UTC"));
        }
        (Outcome::GaveUp, None) => text.push_str(", not run again"),
        _ => {}
    }
    // The plan's own words for what it leaves alone begin so.
    let detail = result.detail.strip_prefix("left alone: ").unwrap_or(&result.detail);
    if !detail.is_empty() {
        text.push_str("; ");
        text.push_str(&one_line(detail));
    }
    text
}

/// How many were recovered.
#[must_use]
pub fn summary(results: &[RecoveryResult]) -> String {
    let count = |is: fn(Outcome) -> bool| results.iter().filter(|result| is(result.outcome)).count();
    let (done, settled) = (count(Outcome::is_recovered), count(Outcome::is_settled));
    let mut text = format!("{done} of {} recovered", results.len());
    if settled > done {
        let _ = write!(text, "; {} had ended", settled - done);
    }
    if results.len() > settled {
        let _ = write!(text, "; {} could not be", results.len() - settled);
    }
    text.push('.');
    text
}
