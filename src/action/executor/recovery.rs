//! An execution of the plan that the deed carries.

use std::time::Duration;

use tokio_postgres::Client;

use crate::action::actor::Actor;
use crate::action::recover::{self, Order};
use crate::model::plan::{Deed, Fate, Outcome, Planned, RecoveryPlan, RecoveryResult, Step};
use crate::pg::trust::TrustedOwners;
use crate::schema::{Schema, SchemaName};

/// What is going to be asked, in short.
pub(in crate::action) fn short(deed: &Deed, id: i64) -> String {
    match planned(deed, id) {
        Some((plan, Planned { step: Step::Terminate { pid, .. }, .. })) => {
            format!(
                "end pid {pid}, which holds its key, and recover execution {id} in schema {}",
                plan.schema
            )
        }
        Some((plan, _)) => format!("recover execution {id} in schema {}", plan.schema),
        None => format!("recover execution {id}"),
    }
}

fn planned(deed: &Deed, id: i64) -> Option<(&RecoveryPlan, &Planned)> {
    let plan = deed.recovery.as_deref()?;
    Some((plan, plan.row(id)?))
}

pub(super) async fn one(
    client: &Client,
    deed: &Deed,
    id: i64,
    actor: &Actor,
    owners: &TrustedOwners,
) -> (Fate, String) {
    let Some((plan, row)) = planned(deed, id) else {
        return (Fate::Refused, "there is no plan for it".to_owned());
    };
    let schema = match SchemaName::new(&plan.schema) {
        Ok(name) => Schema { name, trusted_owners: owners.clone() },
        Err(error) => return (Fate::Refused, error.to_string()),
    };
    let wait = Duration::try_from_secs_f64(deed.wait).unwrap_or_default();
    let order = Order { actor: actor.clone(), reason: None, wait };
    told(recover::execute_one(client, &schema, plan, row, &order).await)
}

const DUE_AGAIN: &str = "its task is due again";

fn told(result: RecoveryResult) -> (Fate, String) {
    let RecoveryResult { outcome, detail, next_run_at, ended_pid, .. } = result;
    let fate = fate(outcome, ended_pid.is_some());
    // That it was recovered whoever tells of it says.
    match (outcome, next_run_at) {
        (Outcome::Recovered, Some(_)) if detail.is_empty() => (fate, DUE_AGAIN.to_owned()),
        (Outcome::Recovered, Some(_)) => (fate, format!("{DUE_AGAIN}; {detail}")),
        _ => (fate, detail),
    }
}

/// Who was told to end, and holds the key still, has not done what was asked.
pub(in crate::action) fn fate(outcome: Outcome, is_asked: bool) -> Fate {
    match outcome {
        Outcome::Recovered => Fate::Done,
        Outcome::GaveUp => Fate::GivenUp,
        Outcome::Held if is_asked => Fate::StillThere,
        Outcome::NotRunning | Outcome::NotFound | Outcome::Changed => Fate::Changed,
        Outcome::LeftAlone
        | Outcome::Locked
        | Outcome::Held
        | Outcome::HeldByUs
        | Outcome::Prepared
        | Outcome::Shared
        | Outcome::Unknown
        | Outcome::NotSlow
        | Outcome::Failed => Fate::Refused,
        Outcome::Hidden | Outcome::Forbidden => Fate::Forbidden,
        Outcome::Uncertain => Fate::Uncertain,
        Outcome::NotTried => Fate::NotTried,
    }
}
