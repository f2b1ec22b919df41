//! Ending a lease of somebody else: a compare-and-set on whose it was when it was seen. Its holder may go on renewing it meanwhile.
//!
//! The row stays, with who had it. Nobody is told: its holder finds out when it renews, or when a fenced write is refused.
//! In a table without tokens whoever renews by name gets it back.

use tokio_postgres::Client;

use super::actor::Actor;
use super::literal::CUT;
use super::message::{is_cut, moment, shown, text};
use super::table::{Condition, Kind, Row, Table, Told};
use crate::model::plan::{LeaseTarget, Outcome};
use crate::pg::trust::TrustedOwners;

/// What is going to be asked, in short.
pub(super) fn short(lease: &LeaseTarget) -> String {
    let (id, owner) = (shown(Some(&lease.id)), shown(Some(&lease.owner)));
    if let Some(token) = lease.token {
        return format!("end lease {id} of {} if owner = {owner} and token = {token}", lease.source);
    }
    let renewed = lease.renewed_at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let term = lease.term;
    format!(
        "end lease {id} of {} if owner = {owner} and ts = '{renewed}', or a renewal of that, and expired_time = {term} s",
        lease.source
    )
}

pub(super) async fn unlock(
    client: &Client,
    lease: &LeaseTarget,
    actor: &Actor,
    owners: &TrustedOwners,
) -> (Outcome, String) {
    let table = match Table::find(client, lease.table, lease.is_own, owners).await {
        Ok(table) => table,
        Err(told) => return told,
    };
    let row = Row { table: &table, id: of_id(&lease.id), conditions: conditions(&table, lease) };
    let act = if lease.is_own { own(&row, actor) } else { published(&row) };
    match row.act(client, &act, &actor.role, lease.is_own).await {
        Told::Answer(_) => (Outcome::Done, format!("the lease of {} has ended", lease.owner)),
        Told::Nothing(outcome, detail) => (outcome, detail),
    }
}

/// Which row it is. What was read is cut, and then no index finds it.
fn of_id(id: &str) -> String {
    if id.len() < CUT && !id.contains('\u{fffd}') {
        return format!("t.id::text = {}", text(id));
    }
    is_cut("t.id::text", Some(id))
}

fn conditions(table: &Table, lease: &LeaseTarget) -> Vec<Condition> {
    let term = match table.kind("expired_time") {
        Some(Kind::Number) => "t.expired_time::float8",
        _ => "EXTRACT(epoch FROM t.expired_time)::float8",
    };
    let mut all = vec![
        Condition::new("its owner is another one", is_cut("t.owner::text", Some(&lease.owner))),
        Condition::new("it has ended by itself", format!("clock_timestamp() < {}", end(table))),
    ];
    // Owner and token say whose it is, and a renewal changes neither.
    if let (true, Some(token)) = (table.has("token"), lease.token) {
        all.push(Condition::same("it was given to somebody else", "t.token", &token.to_string()));
        return all;
    }
    // Without one a renewal is told from a lease that ended and was taken anew, perhaps by another process of the same name, by its time:
    // it came before the end of what was seen.
    let (seen, length) = (moment(Some(lease.renewed_at)), lease.term);
    let ends = format!("({seen} + make_interval(secs => '{length}'::float8))");
    let renewed = format!("t.ts::timestamptz >= {seen} AND t.ts::timestamptz < {ends}");
    all.push(Condition::new("it was taken anew", renewed));
    all.push(Condition::same("its term is another one", term, &format!("'{length}'::float8")));
    if table.has("token") {
        all.push(Condition::new("it was given to somebody else", "t.token IS NULL"));
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

/// The row is locked first, so that no renewal comes between; the function of locktop's own schema compares once more.
fn own(row: &Row<'_>, actor: &Actor) -> String {
    // As they are stored, and not as they were read.
    let values = "d.owner, 'lease ' || d.id || ' of ' || d.owner || ', its owner, was ended'";
    format!(
        "WITH tried AS MATERIALIZED (SELECT {}(t.id, t.owner, t.ts, t.expired_time, t.token) AS is_done, t.id::text AS id, t.owner::text AS owner FROM (SELECT t.* FROM {} AS t WHERE {} FOR UPDATE) AS t), \
         done AS MATERIALIZED (SELECT r.id, r.owner FROM tried AS r WHERE r.is_done){} \
         SELECT json_build_object('done', (SELECT count(*) FROM done))",
        row.table.beside("lease_force_release"),
        row.table.source(),
        row.is_seen(),
        row.table.audit(actor, "unlocked", "worker_id, detail", values),
    )
}

/// Without a term it has ended, whatever its time says; that stays as it is where it has no zone.
fn published(row: &Row<'_>) -> String {
    let time = if row.table.kind("ts") == Some(Kind::Zoned) { "ts = clock_timestamp(), " } else { "" };
    let zero = if row.table.kind("expired_time") == Some(Kind::Number) { "0" } else { "interval '0'" };
    row.update(&format!("{time}expired_time = {zero}"), "t.id", "")
}
