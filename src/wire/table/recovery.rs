use std::fmt::Write as _;

use super::columns;
use crate::model::plan::{AlsoEnded, Planned, RecoveryOutcome, RecoveryPlan, RecoveryResult, RunState, Step};
use crate::text::{Align, duration, one_line};

const HEADS: [(&str, Align); 8] = [
    ("EXECUTION", Align::Right),
    ("TASK", Align::Left),
    ("WORKER", Align::Left),
    ("STATE", Align::Left),
    ("RUN", Align::Right),
    ("LIMIT", Align::Right),
    ("PID", Align::Right),
    ("ACTION", Align::Left),
];

const NAMES: usize = 5;

/// The plan: one line per row, and one for each execution that ends together with a terminated session. Without rows, what
/// was not included.
pub fn plan(plan: &RecoveryPlan) -> Vec<String> {
    if plan.rows.is_empty() {
        return vec![nothing(plan)];
    }
    let mut rows = Vec::new();
    let mut shown = Vec::new();
    for row in &plan.rows {
        rows.push(cells(row, plan.grace));
        let Step::Terminate { pid, .. } = row.step else { continue };
        if !shown.contains(&pid) {
            shown.push(pid);
            let news = row.also_ended.iter().filter(|also| plan.row(also.execution_id).is_none());
            rows.extend(news.map(|also| also_cells(also, pid)));
        }
    }
    columns::laid_out(&HEADS, &rows)
}

fn also_cells(also: &AlsoEnded, pid: i32) -> [String; 8] {
    let [worker, state, run, limit] = [const { String::new() }; 4];
    let name = one_line(&also.task_name).into_owned();
    let effect = format!("ends with it: {}", also.effect);
    [also.execution_id.to_string(), name, worker, state, run, limit, pid.to_string(), effect]
}

fn cells(row: &Planned, grace: f64) -> [String; 8] {
    let seen = &row.seen;
    let long = |seconds: Option<f64>| seconds.map(duration).unwrap_or_default();
    // The current holder of the key, else the former one.
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

fn nothing(plan: &RecoveryPlan) -> String {
    let mut text = "Nothing to recover.".to_owned();
    let others = &plan.others;
    let grace = duration(plan.grace);
    for (number, what) in [
        (others.slow, "past the timeout, with a held key (--timeout)".to_owned()),
        (
            others.settling,
            format!("with a free key, less than {grace} after the last heartbeat or the server's start"),
        ),
        (others.unknown, "not known whether it is running".to_owned()),
    ] {
        if number > 0 {
            let _ = write!(text, " Not included: {number} {what}.");
        }
    }
    text
}

pub fn result(plan: &RecoveryPlan, result: &RecoveryResult) -> String {
    let row = plan.row(result.execution_id);
    let name = row.map(|row| one_line(&row.seen.task_name).into_owned()).unwrap_or_default();
    let word = result.outcome.as_str().replace('_', " ");
    let mut text = format!("{name} (execution {}): {word}", result.execution_id);
    match (result.outcome, result.next_run_at) {
        (RecoveryOutcome::Recovered | RecoveryOutcome::GaveUp, Some(at)) => {
            let _ = write!(text, ", runs next at {}", at.format("%Y-%m-%d %H:%M:%S UTC"));
        }
        (RecoveryOutcome::GaveUp, None) => text.push_str(", not run again"),
        _ => {}
    }
    // The plan's texts for executions that it skips begin with this.
    let detail = result.detail.strip_prefix("skipped: ").unwrap_or(&result.detail);
    if !detail.is_empty() {
        text.push_str("; ");
        text.push_str(&one_line(detail));
    }
    if !result.also_ended.is_empty() {
        let _ = write!(text, "; its session also ran {}", names(&result.also_ended));
    }
    text
}

pub fn names(all: &[AlsoEnded]) -> String {
    let mut names: Vec<String> =
        all.iter().take(NAMES).map(|also| one_line(&also.task_name).into_owned()).collect();
    match all.len().saturating_sub(NAMES) {
        0 => {}
        1 => names.push("1 other".to_owned()),
        more => names.push(format!("{more} others")),
    }
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

pub fn summary(results: &[RecoveryResult]) -> String {
    let count = |is: fn(RecoveryOutcome) -> bool| results.iter().filter(|result| is(result.outcome)).count();
    let (done, settled) = (count(RecoveryOutcome::is_recovered), count(RecoveryOutcome::is_settled));
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
