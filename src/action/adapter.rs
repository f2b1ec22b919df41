//! Returns a job of another system to that system, and ends a lease of another system.
//!
//! The statement comes from the adapter: it compares the target with what was seen, and makes the checks that the other
//! system itself would make.

use tokio_postgres::Client;

use super::message::{Access, Unanswered, number, send, shown};
use super::table::refused;
use crate::model::adapter::ActionKind;
use crate::model::plan::{AdapterTarget, Outcome};
use crate::pg::adapters::{ActOn, act_message, find_statement};
use crate::pg::trust::TrustedOwners;

pub(super) fn short(target: &AdapterTarget) -> String {
    let values = &target.values;
    let (id, who) = (shown(Some(&values.id)), shown(values.who.as_deref()));
    let since = values.since.map(|at| at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true));
    let since = since.unwrap_or_else(|| "NULL".to_owned());
    match target.kind {
        ActionKind::Recover => format!(
            "recover job {id} of {} if worker = {who} and attempt = {} and started_at = {since}",
            target.source,
            number(values.attempt)
        ),
        ActionKind::Unlock => {
            format!("end lease {id} of {} if owner = {who} and acquired_at = {since}", target.source)
        }
    }
}

pub(super) async fn settle(
    client: &Client,
    target: &AdapterTarget,
    owners: &TrustedOwners,
) -> (Outcome, String) {
    let on = ActOn {
        adapter: &target.adapter,
        installation: (target.oid, &target.prefix),
        kind: target.kind,
        number: target.number,
        values: &target.values,
    };
    let nothing = |error: Unanswered| (Outcome::Refused, format!("nothing was sent: {error}"));
    let found = match send(client, Access::ReadOnly, &find_statement(owners, &target.adapter)).await {
        Ok(rows) => rows,
        Err(error) => return nothing(error),
    };
    let sql = match act_message(owners, on, &found) {
        Ok(sql) => sql,
        Err(why) => return (Outcome::Refused, why.to_string()),
    };
    match send(client, Access::ReadWrite, &sql).await {
        Ok(rows) => changed(target, rows.len()),
        Err(error) => {
            let needs = || format!("the role needs: {}", target.grants());
            refused(&error, "its table or its row", needs)
        }
    }
}

fn changed(target: &AdapterTarget, rows: usize) -> (Outcome, String) {
    match rows {
        0 => {
            let words = match target.kind {
                ActionKind::Recover => {
                    "it is another execution now, its worker works again, or its row is locked"
                }
                ActionKind::Unlock => "it has another owner now, or has ended",
            };
            (Outcome::Changed, words.to_owned())
        }
        1 => (Outcome::Done, target.then.to_string()),
        many => {
            (Outcome::Done, format!("{many} rows had this id, and all of them were changed: {}", target.then))
        }
    }
}
