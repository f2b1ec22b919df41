use std::sync::Arc;

use locktop_tasks::recovery::{Order, execute_one, in_doubt, not_tried};
use tokio_postgres::Client;

use super::executor::{not_recorded, outcome_of, recovery_short};
use super::{Asked, Record, published};
use crate::model::finding::Subject;
use crate::model::plan::{
    ActionCommand, ExecutionTarget, Outcome, Planned, PublishedTarget, RecoveryOutcome, RecoveryPlan,
    RecoveryResult, Target, TargetKind, Verb,
};
use crate::model::view::TargetId;
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
    let command = ActionCommand {
        server: TargetId::default(),
        number: 1,
        verb: Verb::Recover,
        targets: Vec::new(),
        wait: order.wait.as_secs_f64(),
    };
    let mut results: Vec<RecoveryResult> = Vec::with_capacity(plan.rows.len());
    for row in &plan.rows {
        let result = if !row.acts() {
            execute_one(client, schema, plan, row, order).await
        } else if in_doubt(&results) {
            not_tried(row)
        } else {
            let what = ExecutionTarget { id: row.seen.execution_id, plan: Arc::clone(&shared) };
            let (statement, target) = (recovery_short(&what), target(row, what));
            let asked = Asked { command: &command, target: &target, statement: &statement };
            match record.asked(Some(client), &asked).await {
                Ok(entry) => {
                    let target = published.iter().find(|target| target.id == row.seen.execution_id);
                    let result = match target {
                        Some(target) => fail_published(client, schema, row, target, order).await,
                        None => execute_one(client, schema, plan, row, order).await,
                    };
                    noted(client, record, (&asked, entry), result).await
                }
                Err(why) => {
                    let (id, why) = (row.seen.execution_id, not_recorded(&why));
                    RecoveryResult::new(id, RecoveryOutcome::Failed, why)
                }
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
    let failed = published::fail(client, target, order, &schema.trusted_owners, utc).await;
    let outcome = match failed.outcome {
        Outcome::Done => RecoveryOutcome::Recovered,
        Outcome::Changed => RecoveryOutcome::Changed,
        Outcome::Forbidden => RecoveryOutcome::Forbidden,
        Outcome::Uncertain => RecoveryOutcome::Uncertain,
        Outcome::NotTried => RecoveryOutcome::NotTried,
        Outcome::StillThere => RecoveryOutcome::Held,
        Outcome::Refused | Outcome::GivenUp => RecoveryOutcome::Failed,
    };
    let also_ended = if failed.ended_pid.is_some() { row.also_ended.clone() } else { Vec::new() };
    let result = RecoveryResult::new(row.seen.execution_id, outcome, failed.detail);
    RecoveryResult { ended_pid: failed.ended_pid, also_ended, ..result }
}

fn target(row: &Planned, what: ExecutionTarget) -> Target {
    let name = format!("execution {} of {}", what.id, row.seen.task_name);
    Target { what: TargetKind::Execution(what), name: one_line(&name).into_owned(), subject: Subject::Server }
}

async fn noted<R: Record>(
    client: &Client,
    record: &R,
    (asked, entry): (&Asked<'_>, R::Entry),
    result: RecoveryResult,
) -> RecoveryResult {
    // The outcome already shows that it was recovered.
    let said = match result.outcome {
        RecoveryOutcome::Recovered => result.detail.clone(),
        other => format!("{}: {}", other.as_str(), result.detail),
    };
    let of_target = asked.target.result(outcome_of(result.outcome, result.ended_pid.is_some()), &said);
    match record.told(Some(client), asked, Some(entry), &of_target).await {
        Ok(()) => result,
        Err(why) => {
            let detail = format!("{}; its result is not recorded: {why}", result.detail);
            RecoveryResult { detail, ..result }
        }
    }
}
