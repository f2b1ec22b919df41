//! Failing an execution in a published log, which names no session: only if the row is the one that was seen and no session holds its key.
//! Both are locked to the end of the transaction. Nobody is ended. The published tables leave its task due by themselves.

use tokio_postgres::Client;

use super::actor::Actor;
use super::message::{moment, note};
use super::table::{Row, Table};
use crate::model::plan::row_change::{ColumnKind, Condition};
use crate::model::plan::{Outcome, PublishedTarget};
use crate::pg::trust::TrustedOwners;

/// What is going to be asked, in short.
pub(super) fn short(target: &PublishedTarget) -> String {
    let PublishedTarget { source, id, key, .. } = target;
    format!(
        "UPDATE {source} SET status = 'failed' WHERE id = {id} if it is still running and no session holds key {key}"
    )
}

pub(super) async fn fail(
    client: &Client,
    target: &PublishedTarget,
    actor: &Actor,
    owners: &TrustedOwners,
) -> (Outcome, String) {
    let table = match Table::find(client, target.table, false, owners).await {
        Ok(table) => table,
        Err(told) => return told,
    };
    let row = Row { table: &table, id: format!("t.id = {}", target.id), conditions: conditions(target) };
    let act = row.update_while_free(&set(&table, actor), Some(target.key));
    match row.act(client, &act, &actor.role, false).await {
        Ok(answer) if answer.is_busy => {
            let detail = format!("a session holds key {}: a worker may be working on it", target.key);
            (Outcome::Refused, detail)
        }
        Ok(_) => (Outcome::Done, "marked as failed".to_owned()),
        Err(told) => told,
    }
}

fn conditions(target: &PublishedTarget) -> Vec<Condition> {
    let started = moment(Some(target.started_at));
    vec![
        Condition::new("it has ended", "t.status::text = 'running'"),
        Condition::cut("another worker holds it", "t.worker_id::text", Some(&target.worker)),
        Condition::same("its start has changed", "t.started_at::timestamptz", &started),
    ]
}

/// What becomes of the row.
fn set(table: &Table, actor: &Actor) -> String {
    let mut set = "status = 'failed'".to_owned();
    if matches!(table.kind("completed_at"), Some(ColumnKind::Zoned | ColumnKind::Time | ColumnKind::Date)) {
        set.push_str(", completed_at = clock_timestamp()");
    }
    if table.has("error_message") {
        let words = format!("its worker's session had ended: failed by {actor}");
        set.push_str(", error_message = ");
        set.push_str(&note(&words));
    }
    set
}
