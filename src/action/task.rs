//! Letting a task be taken or not, and making it due: a compare-and-set on exactly the row that was seen.

use tokio_postgres::Client;

use super::actor::Actor;
use super::message::{is_cut, moment, text};
use super::table::{Condition, Kind, Row, Table, Told};
use crate::model::plan::{Outcome, TaskTarget, Verb};
use crate::pg::trust::TrustedOwners;

/// What is set.
fn set(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::Enable => Some("is_enabled = true"),
        Verb::Disable => Some("is_enabled = false"),
        Verb::MakeDue => Some("next_run_at = clock_timestamp()"),
        _ => None,
    }
}

/// What is going to be asked, in short.
pub(super) fn short(verb: Verb, task: &TaskTarget) -> String {
    let set = set(verb).unwrap_or("nothing");
    let enabled = task.enabled.map_or_else(|| "?".to_owned(), |enabled| enabled.to_string());
    let due = moment(task.next_run_at);
    let (source, id) = (&task.source, task.id);
    format!("UPDATE {source} SET {set} WHERE id = {id} if is_enabled = {enabled} and next_run_at = {due}")
}

pub(super) async fn change(
    client: &Client,
    verb: Verb,
    task: &TaskTarget,
    actor: &Actor,
    owners: &TrustedOwners,
) -> (Outcome, String) {
    let (Some(set), column) = (set(verb), column(verb)) else {
        return (Outcome::Refused, format!("{} is not for tasks", verb.as_str()));
    };
    let table = match Table::find(client, task.table, task.is_own, owners).await {
        Ok(table) => table,
        Err(told) => return told,
    };
    if !table.has(column) {
        return (Outcome::Refused, format!("{} has no column {column}", task.source));
    }
    // As an expression of the column's own type: a plain date cannot hold the time.
    if verb == Verb::MakeDue && !matches!(table.kind(column), Some(Kind::Zoned | Kind::Time)) {
        return (Outcome::Refused, format!("{column} of {} is no time", task.source));
    }
    let mut conditions = conditions(&table, task);
    if task.is_own && verb == Verb::MakeDue {
        // Its end sets when it is due next, whatever is set meanwhile.
        let log = table.beside("task_execution_log");
        let is_idle =
            format!("NOT EXISTS (SELECT FROM {log} AS e WHERE e.task_id = t.id AND e.status = 'running')");
        conditions.push(Condition::new("it runs by now", is_idle));
    }
    let row = Row { table: &table, id: format!("t.id = {}", task.id), conditions };
    let audit = if task.is_own {
        table.audit(actor, verb.as_str(), "task_id, detail", "d.id, d.detail")
    } else {
        String::new()
    };
    // The name as it is stored.
    let name = if table.has("task_name") { "t.task_name::text" } else { "NULL" };
    let detail = format!("coalesce({name}, 'a task') || {}", text(&format!(": {set}")));
    let act = row.update(set, &format!("t.id, {detail} AS detail"), &audit);
    match row.act(client, &act, &actor.role, task.is_own).await {
        Told::Answer(_) => (Outcome::Done, done(verb).to_owned()),
        Told::Nothing(outcome, detail) => (outcome, detail),
    }
}

fn column(verb: Verb) -> &'static str {
    if verb == Verb::MakeDue { "next_run_at" } else { "is_enabled" }
}

fn conditions(table: &Table, task: &TaskTarget) -> Vec<Condition> {
    let mut all = Vec::new();
    if let (true, Some(enabled)) = (table.has("is_enabled"), task.enabled) {
        let column = "coalesce(t.is_enabled, false)";
        all.push(Condition::same("it was enabled or disabled", column, &enabled.to_string()));
    }
    if table.has("next_run_at") {
        let column = "t.next_run_at::timestamptz";
        all.push(Condition::same("it is due at another time", column, &moment(task.next_run_at)));
    }
    if let Some(name) = task.name.as_deref()
        && table.has("task_name")
    {
        all.push(Condition::new("it has another name", is_cut("t.task_name::text", Some(name))));
    }
    all
}

fn done(verb: Verb) -> &'static str {
    match verb {
        Verb::Enable => "enabled",
        Verb::Disable => "disabled",
        _ => "due now",
    }
}
