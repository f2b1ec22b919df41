use locktop_tasks::recovery::{self, Order};
use tokio_postgres::Client;

use crate::model::plan::{ExecutionTarget, Outcome, Planned, RecoveryOutcome, RecoveryResult, Step};
use crate::pg::trust::TrustedOwners;
use crate::schema::{Schema, SchemaName};

pub(in crate::action) fn short(target: &ExecutionTarget) -> String {
    let ExecutionTarget { id, plan } = target;
    let schema = &plan.schema;
    match target.row() {
        Some(Planned { step: Step::Terminate { pid, .. }, .. }) => {
            format!("terminate pid {pid}, which holds its key, and recover execution {id} in schema {schema}")
        }
        _ => format!("recover execution {id} in schema {schema}"),
    }
}

pub(super) async fn one(
    client: &Client,
    target: &ExecutionTarget,
    order: &Order,
    owners: &TrustedOwners,
) -> (Outcome, String) {
    let plan = &target.plan;
    let Some(row) = target.row() else { return (Outcome::Refused, "it has no plan".to_owned()) };
    let schema = match SchemaName::new(&plan.schema) {
        Ok(name) => Schema { name, trusted_owners: owners.clone() },
        Err(error) => return (Outcome::Refused, error.to_string()),
    };
    told(recovery::execute_one(client, &schema, plan, row, order).await)
}

const DUE_AGAIN: &str = "its task is due again";

fn told(result: RecoveryResult) -> (Outcome, String) {
    let RecoveryResult { outcome, detail, next_run_at, ended_pid, .. } = result;
    let told = outcome_of(outcome, ended_pid.is_some());
    // The caller already reports that it was recovered.
    match (outcome, next_run_at) {
        (RecoveryOutcome::Recovered, Some(_)) if detail.is_empty() => (told, DUE_AGAIN.to_owned()),
        (RecoveryOutcome::Recovered, Some(_)) => (told, format!("{DUE_AGAIN}; {detail}")),
        _ => (told, detail),
    }
}

/// A session that was asked to end and still holds the key has not done what was requested.
pub(in crate::action) fn outcome_of(outcome: RecoveryOutcome, is_asked: bool) -> Outcome {
    match outcome {
        RecoveryOutcome::Recovered => Outcome::Done,
        RecoveryOutcome::GaveUp => Outcome::GivenUp,
        RecoveryOutcome::Held if is_asked => Outcome::StillThere,
        RecoveryOutcome::NotRunning | RecoveryOutcome::NotFound | RecoveryOutcome::Changed => {
            Outcome::Changed
        }
        RecoveryOutcome::LeftAlone
        | RecoveryOutcome::Locked
        | RecoveryOutcome::Held
        | RecoveryOutcome::HeldByUs
        | RecoveryOutcome::Prepared
        | RecoveryOutcome::Shared
        | RecoveryOutcome::Unknown
        | RecoveryOutcome::NotSlow
        | RecoveryOutcome::Failed => Outcome::Refused,
        RecoveryOutcome::Hidden | RecoveryOutcome::Forbidden => Outcome::Forbidden,
        RecoveryOutcome::Uncertain => Outcome::Uncertain,
        RecoveryOutcome::NotTried => Outcome::NotTried,
    }
}
