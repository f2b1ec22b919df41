use super::object::{self, Json, object};
use crate::model::lock_key::LockKey;
use crate::model::plan::{AlsoEnded, Planned, RecoveryPlan, RecoveryResult, Step};

/// A plan and its results as one line of JSON that is safe to show on a terminal.
pub fn recovery(
    plan: &RecoveryPlan,
    results: &[RecoveryResult],
    dry_run: bool,
) -> Result<String, serde_json::Error> {
    object::text(&object!(
        plan;
        format = 1,
        schema,
        taken_at,
        orphan_grace = plan.grace,
        dry_run = dry_run,
        plan[] = plan.rows.iter().map(|row| planned(row, plan.grace)),
        results[] = results.iter().map(|result| done(result, plan.row(result.execution_id))),
    ))
}

fn planned(row: &Planned, grace: f64) -> impl Json {
    let seen = &row.seen;
    let is_own = row.foreign_effect.is_none();
    let (step, reason) = match row.step {
        Step::Recover => ("recover", None),
        Step::Terminate { .. } => ("terminate", None),
        Step::Leave(reason) => ("leave", Some(reason)),
    };
    object!(
        seen;
        id = seen.execution_id,
        task_id,
        task_name,
        worker_id,
        state = seen.state.as_str(),
        started_at,
        heartbeat_at,
        run = seen.run_seconds,
        timeout = seen.timeout_seconds,
        attempt = is_own.then_some(seen.attempt),
        max_attempts = is_own.then_some(seen.max_attempts),
        lock_key = seen.lock_id.map(LockKey::Bigint),
        holder_pid,
        backend_pid,
        backend_start,
        step = step,
        reason = reason,
        effect = row.effect(grace),
        also_ended[] = row.also_ended.iter().map(also),
    )
}

fn done(result: &RecoveryResult, row: Option<&Planned>) -> impl Json {
    object!(
        result;
        id = result.execution_id,
        task_id = row.map(|row| row.seen.task_id),
        task_name = row.map(|row| &row.seen.task_name),
        outcome = result.outcome.as_str(),
        detail,
        holder_pid,
        ended_pid,
        audit_id,
        next_run_at,
        also_ended[] = result.also_ended.iter().map(also),
    )
}

/// An execution that ends with the session that is terminated for another one.
fn also(also: &AlsoEnded) -> impl Json {
    object!(also; id = also.execution_id, task_name, effect)
}
