//! Ending a lease of somebody else: a compare-and-set on exactly the row that was seen.
//!
//! The row stays, with who had it. Nobody is told: its holder finds out when it renews, or when a fenced write is refused.
//! In a table without tokens whoever renews by name gets it back.

use tokio_postgres::Client;

use super::actor::Actor;
use super::message::{moment, text};
use super::table::{Condition, Kind, Row, Table, Told};
use crate::model::plan::{Fate, LeaseTarget};
use crate::pg::trust::TrustedOwners;

/// What is going to be asked, in short.
pub(super) fn short(lease: &LeaseTarget) -> String {
    let token = lease.token.map_or_else(String::new, |token| format!(" and token = {token}"));
    let (id, owner) = (text(&lease.id), text(&lease.owner));
    let renewed = lease.renewed_at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let term = lease.term;
    format!(
        "end lease {id} of {} if owner = {owner} and ts = '{renewed}' and expired_time = {term} s{token}",
        lease.source
    )
}

pub(super) async fn unlock(
    client: &Client,
    lease: &LeaseTarget,
    actor: &Actor,
    owners: &TrustedOwners,
) -> (Fate, String) {
    let table = match Table::find(client, lease.table, lease.is_own, owners).await {
        Ok(table) => table,
        Err(told) => return told,
    };
    let row = Row {
        table: &table,
        id: format!("t.id::text = {}", text(&lease.id)),
        conditions: conditions(&table, lease),
    };
    let act = if lease.is_own { own(&row, lease, actor) } else { published(&row) };
    match row.act(client, &act, &actor.role, lease.is_own).await {
        Told::Answer(_) => (Fate::Done, format!("the lease of {} has ended", lease.owner)),
        Told::Nothing(fate, detail) => (fate, detail),
    }
}

fn conditions(table: &Table, lease: &LeaseTarget) -> Vec<Condition> {
    let term = match table.kind("expired_time") {
        Some(Kind::Number) => "t.expired_time::float8",
        _ => "EXTRACT(epoch FROM t.expired_time)::float8",
    };
    let mut all = vec![
        // What was read is cut there.
        Condition::same("its owner is another one", "left(t.owner::text, 500)", &text(&lease.owner)),
        Condition::same("it was renewed or taken", "t.ts::timestamptz", &moment(Some(lease.renewed_at))),
        Condition::same("its term is another one", term, &format!("'{}'::float8", lease.term)),
        Condition::new("it has ended by itself", format!("clock_timestamp() < {}", end(table))),
    ];
    if table.has("token") {
        let token = lease.token.map_or_else(|| "NULL".to_owned(), |token| token.to_string());
        all.push(Condition::same("it was given to somebody else", "t.token", &token));
    }
    all
}

fn end(table: &Table) -> String {
    let term = match table.kind("expired_time") {
        Some(Kind::Number) => "make_interval(secs => t.expired_time::float8)",
        _ => "t.expired_time",
    };
    format!("t.ts::timestamptz + {term}")
}

/// The function of locktop's own schema compares once more, with the row that is there when it writes.
fn own(row: &Row<'_>, lease: &LeaseTarget, actor: &Actor) -> String {
    let detail = format!("lease {} of {}, its owner, was ended", lease.id, lease.owner);
    let values = format!("{}, {}", text(&lease.owner), text(&detail));
    format!(
        "WITH tried AS MATERIALIZED (SELECT {}(t.id, t.owner, t.ts, t.expired_time, t.token) AS is_done FROM {} AS t WHERE {}), \
         done AS MATERIALIZED (SELECT FROM tried AS r WHERE r.is_done){} \
         SELECT json_build_object('done', (SELECT count(*) FROM done))",
        row.table.beside("lease_force_release"),
        row.table.source(),
        row.is_seen(),
        row.table.audit(actor, "unlocked", "worker_id, detail", &values),
    )
}

/// Without a term it has ended, whatever its time says; that stays as it is where it has no zone.
fn published(row: &Row<'_>) -> String {
    let time = if row.table.kind("ts") == Some(Kind::Zoned) { "ts = clock_timestamp(), " } else { "" };
    let zero = if row.table.kind("expired_time") == Some(Kind::Number) { "0" } else { "interval '0'" };
    row.update(&format!("{time}expired_time = {zero}"), "t.id", "")
}
