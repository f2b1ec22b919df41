//! Putting an item of the work queue back, and setting one aside.
//!
//! In locktop's own table the functions of the schema do it, which never take an item from a session that is there. In a published
//! table nothing says whose session has an item: what is being worked on is left alone unless nobody has its row locked and
//! its advisory key, the id as it is unless the config says another, can be had; both are kept to the end of the transaction.

use tokio_postgres::Client;

use super::actor::Actor;
use super::message::{is, is_cut, note, number, packed, shown};
use super::table::{Answer, Condition, Row, Table, Told};
use crate::model::plan::{ItemTarget, Outcome, Verb};
use crate::pg::trust::TrustedOwners;

/// What is going to be asked, in short.
pub(super) fn short(verb: Verb, item: &ItemTarget) -> String {
    let (id, source) = (item.id, &item.source);
    let status = shown(item.status.as_deref());
    let worker = shown(item.worker.as_deref());
    let attempt = number(item.attempt);
    let verb = verb.as_str();
    format!(
        "{verb} item {id} of {source} if status = {status} and worker_id = {worker} and attempt = {attempt}"
    )
}

pub(super) async fn settle(
    client: &Client,
    verb: Verb,
    item: &ItemTarget,
    actor: &Actor,
    owners: &TrustedOwners,
) -> (Outcome, String) {
    let status = item.status.as_deref().unwrap_or_default();
    let Some(function) = function(verb, status) else {
        return (Outcome::Refused, format!("{} is not for an item that is {status}", verb.as_str()));
    };
    let table = match Table::find(client, item.table, item.is_own, owners).await {
        Ok(table) => table,
        Err(told) => return told,
    };
    let row = Row { table: &table, id: format!("t.id = {}", item.id), conditions: conditions(&table, item) };
    let act = if item.is_own { own(&row, function, actor) } else { published(&row, verb, item) };
    match row.act(client, &act, &actor.role, item.is_own).await {
        Told::Answer(answer) => told(verb, answer),
        Told::Nothing(outcome, detail) => (outcome, detail),
    }
}

/// The function of the schema for it.
fn function(verb: Verb, status: &str) -> Option<&'static str> {
    match (verb, status) {
        (Verb::Requeue, "processing") => Some("requeue_queue_item"),
        (Verb::Requeue, "failed") => Some("retry_queue_item"),
        (Verb::SetAside, "processing" | "pending") => Some("set_aside_queue_item"),
        _ => None,
    }
}

fn conditions(table: &Table, item: &ItemTarget) -> Vec<Condition> {
    let status = is("t.status::text", item.status.as_deref());
    let mut all = vec![Condition::new("its status has changed", status)];
    if table.has("worker_id") {
        let worker = is_cut("t.worker_id::text", item.worker.as_deref());
        all.push(Condition::new("another worker has it", worker));
    }
    if table.has("attempt") {
        all.push(Condition::same("another attempt began", "t.attempt", &number(item.attempt)));
    }
    all
}

/// The row is locked before the function looks at it, so that it is the one that was seen.
fn own(row: &Row<'_>, function: &str, actor: &Actor) -> String {
    format!(
        "SELECT {} \
         FROM (SELECT t.id FROM {} AS t WHERE {} FOR UPDATE SKIP LOCKED) AS q CROSS JOIN LATERAL {}(q.id, {}) AS r",
        packed("json_build_object('outcome', r.outcome, 'detail', r.detail)"),
        row.table.source(),
        row.is_seen(),
        row.table.beside(function),
        note(&actor.to_string()),
    )
}

/// Somebody may work on what is being processed, and holds its key then.
fn published(row: &Row<'_>, verb: Verb, item: &ItemTarget) -> String {
    let is_taken = item.status.as_deref() == Some("processing");
    let key = is_taken.then(|| item.key.unwrap_or(item.id));
    row.update_while_free(&published_set(row.table, verb), key)
}

fn published_set(table: &Table, verb: Verb) -> String {
    if verb == Verb::SetAside {
        return "status = 'failed'".to_owned();
    }
    let cleared = ["worker_id", "started_at"].into_iter().filter(|column| table.has(column));
    let cleared = cleared.map(|column| format!(", {column} = NULL"));
    format!("status = 'pending'{}", cleared.collect::<String>())
}

fn told(verb: Verb, answer: Answer) -> (Outcome, String) {
    if answer.is_busy {
        let detail = "its advisory key is held: a worker may be working on it".to_owned();
        return (Outcome::Refused, detail);
    }
    let detail = answer.detail.unwrap_or_default();
    match answer.outcome.as_deref() {
        None if verb == Verb::SetAside => (Outcome::Done, "set aside as failed".to_owned()),
        None | Some("requeued") => (Outcome::Done, "pending again".to_owned()),
        Some("gave_up") => {
            (Outcome::Done, format!("set aside as failed, since it was the last attempt: {detail}"))
        }
        Some("set_aside") => (Outcome::Done, "set aside as failed".to_owned()),
        Some("not_found" | "wrong_state") => (Outcome::Changed, detail),
        Some(_) => (Outcome::Refused, detail),
    }
}
