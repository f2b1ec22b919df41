use std::sync::Arc;

use locktop_tasks::recovery::{Order, execute_one, in_doubt, not_tried};
use tokio_postgres::Client;

use super::executor::{not_recorded, outcome_of, recovery_short};
use super::{Asked, Record, published};
use crate::model::finding::Subject;
use crate::model::plan::{
    ExecutionTarget, Outcome, Planned, PublishedTarget, RecoveryOutcome, RecoveryPlan, RecoveryResult,
    Target, TargetKind, Verb,
};
use crate::schema::Schema;
use crate::text::one_line;

/// As [`locktop_tasks::recovery::execute`]. For published tables, `published` has the executions to fail. A step that
/// cannot be recorded is not taken.
pub async fn execute_recorded(
    client: &Client,
    schema: impl Into<Schema>,
    (plan, published): (&RecoveryPlan, &[PublishedTarget]),
    order: &Order,
    record: &impl Record,
    mut told: impl FnMut(&RecoveryResult),
) -> Vec<RecoveryResult> {
    let schema = &schema.into();
    let shared = Arc::new(plan.clone());
    let mut results: Vec<RecoveryResult> = Vec::with_capacity(plan.rows.len());
    for row in &plan.rows {
        let id = row.seen.execution_id;
        let result = if !row.acts() {
            execute_one(client, schema, plan, row, order).await
        } else if in_doubt(&results) {
            not_tried(row)
        } else {
            let what = ExecutionTarget { id, plan: Arc::clone(&shared) };
            let statement = recovery_short(&what);
            let name = one_line(&format!("execution {id} of {}", row.seen.task_name)).into_owned();
            let target = Target { what: TargetKind::Execution(what), name, subject: Subject::Server };
            let asked = Asked { number: 1, verb: Verb::Recover, target: &target, statement: &statement };
            match record.asked(Some(client), &asked).await {
                Ok(entry) => {
                    let mut result = match published.iter().find(|target| target.id == id) {
                        Some(target) => fail_published(client, schema, row, target, order).await,
                        None => execute_one(client, schema, plan, row, order).await,
                    };
                    // The outcome already shows that it was recovered.
                    let said = match result.outcome {
                        RecoveryOutcome::Recovered => result.detail.clone(),
                        other => format!("{}: {}", other.as_str(), result.detail),
                    };
                    let outcome = outcome_of(result.outcome, result.ended_pid.is_some());
                    let recorded = target.result(outcome, &said);
                    if let Err(why) = record.told(Some(client), &asked, Some(entry), &recorded).await {
                        result.detail.extend(["; its result is not recorded: ", why.as_str()]);
                    }
                    result
                }
                Err(why) => RecoveryResult::new(id, RecoveryOutcome::Failed, not_recorded(&why)),
            }
        };
        told(&result);
        results.push(result);
    }
    results
}

async fn fail_published(
    client: &Client,
    schema: &Schema,
    row: &Planned,
    target: &PublishedTarget,
    order: &Order,
) -> RecoveryResult {
    // UTC, as in all output of the command.
    let utc = chrono::Offset::fix(&chrono::Utc);
    let (outcome, detail, ended_pid) =
        published::fail(client, target, order, &schema.trusted_owners, utc).await;
    let outcome = match outcome {
        Outcome::Done => RecoveryOutcome::Recovered,
        Outcome::Changed => RecoveryOutcome::Changed,
        Outcome::Forbidden => RecoveryOutcome::Forbidden,
        Outcome::Uncertain => RecoveryOutcome::Uncertain,
        Outcome::NotTried => RecoveryOutcome::NotTried,
        Outcome::StillThere => RecoveryOutcome::Held,
        Outcome::Refused | Outcome::GivenUp => RecoveryOutcome::Failed,
    };
    let also_ended = if ended_pid.is_some() { row.also_ended.clone() } else { Vec::new() };
    RecoveryResult { ended_pid, also_ended, ..RecoveryResult::new(row.seen.execution_id, outcome, detail) }
}
