use serde::Serialize;

use super::harmless;
use super::rows::{Key, Time};
use crate::model::lock_key::LockKey;
use crate::model::plan::{AlsoEnded, Planned, Reason, RecoveryPlan, RecoveryResult, Step};

#[derive(Debug, Serialize)]
struct Document<'a> {
    format: u32,
    schema: &'a str,
    taken_at: Time,
    orphan_grace: f64,
    dry_run: bool,
    plan: Vec<Row<'a>>,
    results: Vec<Done<'a>>,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    id: i64,
    task_id: i64,
    task_name: &'a str,
    worker_id: &'a str,
    state: &'static str,
    started_at: Option<Time>,
    heartbeat_at: Option<Time>,
    run: Option<f64>,
    timeout: Option<f64>,
    attempt: Option<i64>,
    max_attempts: Option<i64>,
    lock_key: Option<Key>,
    holder_pid: Option<i32>,
    backend_pid: Option<i32>,
    backend_start: Option<Time>,
    step: &'static str,
    reason: Option<Reason>,
    effect: String,
    also_ended: Vec<Also<'a>>,
}

/// An execution that ends with the session that is terminated for another one.
#[derive(Debug, Serialize)]
struct Also<'a> {
    id: i64,
    task_name: &'a str,
    effect: &'a str,
}

#[derive(Debug, Serialize)]
struct Done<'a> {
    id: i64,
    task_id: Option<i64>,
    task_name: Option<&'a str>,
    outcome: &'static str,
    detail: &'a str,
    holder_pid: Option<i32>,
    ended_pid: Option<i32>,
    audit_id: Option<i64>,
    next_run_at: Option<Time>,
    also_ended: Vec<Also<'a>>,
}

/// A plan and its results as one line of JSON that is safe to show on a terminal.
pub fn recovery(
    plan: &RecoveryPlan,
    results: &[RecoveryResult],
    dry_run: bool,
) -> Result<String, serde_json::Error> {
    harmless::to_string(&Document {
        format: 1,
        schema: &plan.schema,
        taken_at: Time(plan.taken_at),
        orphan_grace: plan.grace,
        dry_run,
        plan: plan.rows.iter().map(|row| planned(row, plan.grace)).collect(),
        results: results.iter().map(|result| done(result, plan.row(result.execution_id))).collect(),
    })
}

fn planned(row: &Planned, grace: f64) -> Row<'_> {
    let seen = &row.seen;
    let (step, reason) = match row.step {
        Step::Recover => ("recover", None),
        Step::Terminate { .. } => ("terminate", None),
        Step::Leave(reason) => ("leave", Some(reason)),
    };
    Row {
        id: seen.execution_id,
        task_id: seen.task_id,
        task_name: &seen.task_name,
        worker_id: &seen.worker_id,
        state: seen.state.as_str(),
        started_at: seen.started_at.map(Time),
        heartbeat_at: seen.heartbeat_at.map(Time),
        run: seen.run_seconds,
        timeout: seen.timeout_seconds,
        attempt: row.foreign_effect.is_none().then_some(seen.attempt),
        max_attempts: row.foreign_effect.is_none().then_some(seen.max_attempts),
        lock_key: seen.lock_id.map(|number| LockKey::Bigint(number).into()),
        holder_pid: seen.holder_pid,
        backend_pid: seen.backend_pid,
        backend_start: seen.backend_start.map(Time),
        step,
        reason,
        effect: row.effect(grace),
        also_ended: also(&row.also_ended),
    }
}

fn done<'a>(result: &'a RecoveryResult, row: Option<&'a Planned>) -> Done<'a> {
    Done {
        id: result.execution_id,
        task_id: row.map(|row| row.seen.task_id),
        task_name: row.map(|row| row.seen.task_name.as_str()),
        outcome: result.outcome.as_str(),
        detail: &result.detail,
        holder_pid: result.holder_pid,
        ended_pid: result.ended_pid,
        audit_id: result.audit_id,
        next_run_at: result.next_run_at.map(Time),
        also_ended: also(&result.also_ended),
    }
}

fn also(all: &[AlsoEnded]) -> Vec<Also<'_>> {
    all.iter()
        .map(|also| Also { id: also.execution_id, task_name: &also.task_name, effect: &also.effect })
        .collect()
}
