use std::sync::Arc;

use super::{
    Condition, Found, GONE, Noted, PlanColumnKind, RowAct, RowChange, RowStatement, TableShape, change_in,
    old,
};
use crate::model::Timestamp;
use crate::model::finding::Subject;
use crate::model::lease::{Lease, LeaseId, LeaseRow, LeaseState, REDIS, redis_id};
use crate::model::plan::question::is_typable;
use crate::model::plan::{Caution, CautionKind, PlanIndex, RowTarget, TargetChange, TargetKind};
use crate::model::redis_lease::{LockValue, RedisLease};
use crate::model::source_tables::TableRows;
use crate::text;
use locktop_tasks::literal::CUT;
use locktop_tasks::message::{self, is_cut, moment, shown};

/// What must be typed if the owner may be alive: the id of the lease.
pub(super) fn typed(index: &PlanIndex<'_>, subject: Subject) -> Option<String> {
    let row = if let Subject::Lease(id) = subject { index.view.lease(id)? } else { return None };
    if row.state != LeaseState::Held || row.owner_alive == Some(false) {
        return None;
    }
    if is_typable(&row.name) {
        return Some(row.name.to_string());
    }
    Some(row.owner_pid.map_or_else(|| "end".to_owned(), |pid| pid.to_string()))
}

pub(super) fn planned(index: &PlanIndex<'_>, row: Option<&LeaseRow>) -> Found {
    let row = row.ok_or(GONE)?;
    let mut whose = None;
    let (what, does, mut cautions) = if &*row.source == REDIS {
        redis(&in_redis(index, row.id).ok_or(GONE)?)?
    } else {
        match row.state {
            LeaseState::Held => {}
            LeaseState::Expired => Err("has expired: the next request gets it; nothing to end")?,
            LeaseState::Released => Err("was released: nothing to end")?,
            _ => Err("it is not held")?,
        }
        index.writable().map_err(|refused| refused.reason)?;
        let (table, lease) = in_table(index, row).ok_or(GONE)?;
        table.source.owner.refusal(&table.source.name).map_or(Ok(()), Err)?;
        whose = table.source.owner.fact(&table.source.name);
        in_postgres(index, table, lease)?
    };
    let alive = match row.owner_alive {
        Some(true) => "its owner's session is connected",
        Some(false) => "its owner's session has ended",
        None => "whether its owner is alive is not known",
    };
    if row.owner_alive != Some(false) {
        cautions.push(Caution::owner("its owner may be working; this does not stop it"));
    }
    let owner = row.owner.as_deref().map(|owner| format!("owner {owner}"));
    let mut facts: Vec<String> = owner.into_iter().chain([alive.to_owned()]).collect();
    facts.push(match (row.term, row.left) {
        // This stays true while the dialog is open, even if the owner renews the lease.
        (Some(term), Some(_)) => format!("expires {} after its last renewal", text::duration(term)),
        (None, Some(left)) => {
            format!("expires in {}, unless it is renewed", text::duration(left.max(0.0)))
        }
        (_, None) => "never expires".to_owned(),
    });
    facts.extend(row.quorum.map(|(votes, servers)| format!("on {votes} of {servers} servers")));
    if row.waiting > 0 {
        facts.push(format!("{} waiting for it", text::count(row.waiting.into())));
    }
    facts.extend(whose);
    Ok((what, does, facts, cautions))
}

type LeaseParts = (TargetKind, String, Vec<Caution>);

fn in_table<'a>(index: &PlanIndex<'a>, row: &LeaseRow) -> Option<(&'a TableRows<Lease>, &'a Lease)> {
    let tables = index.snapshot.sources.leases.iter();
    let table = tables.filter(|table| table.source.name == row.source);
    table
        .flat_map(|table| table.section.last_rows().iter().map(move |lease| (table, lease)))
        .find(|(_, lease)| lease.id == row.key)
}

fn in_redis(index: &PlanIndex<'_>, id: LeaseId) -> Option<Arc<RedisLease>> {
    let rows = index.snapshot.sources.redis.rows.iter();
    rows.filter(|lease| lease.holder.is_lock())
        .find(|lease| redis_id(lease) == id)
        .map(|lease| Arc::new(lease.clone()))
}

fn in_postgres(
    index: &PlanIndex<'_>,
    table: &TableRows<Lease>,
    lease: &Lease,
) -> Result<LeaseParts, &'static str> {
    lease.owner.as_ref().ok_or("its table has no owner, so nothing can be compared")?;
    lease.renewed_at.ok_or("its table has no time of renewal, so nothing can be compared")?;
    lease.term.ok_or("its table has no term, so nothing can be compared")?;
    let source = &table.source;
    let target = RowTarget::new(source.table, &source.name, source.own_keys, lease);
    let mut cautions: Vec<Caution> = old(index, &table.section).into_iter().collect();
    if !source.own_keys {
        let words = match lease.token {
            None => {
                "its table has no tokens: a client that renews it under the owner's name acquires it again"
            }
            Some(_) => {
                "a client that renews it under the owner's name without comparing the token acquires it again"
            }
        };
        cautions.push(Caution::new(CautionKind::Futile, words));
    }
    let does = if source.own_keys {
        let token = lease.token.map(|token| format!(", token {token}")).unwrap_or_default();
        format!("lease_force_release({}{token})", lease.id)
    } else {
        format!("UPDATE {} SET its term to 0 if the row is unchanged", source.name)
    };
    Ok((TargetKind::Lease(target), does, cautions))
}

fn redis(lease: &Arc<RedisLease>) -> Result<LeaseParts, &'static str> {
    let values = || lease.places.iter().map(|place| &place.value).chain([&lease.holder]);
    if values().any(|value| matches!(value, LockValue::Text { whole: false, .. })) {
        return Err("its value is too long to be read, so it cannot be compared");
    }
    if values().all(|value| matches!(value, LockValue::Other(_))) {
        return Err("is not a known lock");
    }
    let mut cautions = Vec::new();
    if lease.down > 0 {
        let words = format!("{} of {} servers do not answer: it may remain there", lease.down, lease.servers);
        cautions.push(Caution::new(CautionKind::Futile, words));
    }
    let servers =
        if lease.servers == 1 { "its server".to_owned() } else { format!("{} servers", lease.servers) };
    let does = format!("delete {} on {servers} if its value is the one shown", lease.name());
    Ok((TargetKind::RedisLease(Arc::clone(lease)), does, cautions))
}

/// Updates a target: after a renewal the holder is the same, and the row as shown now is what is compared.
pub(super) fn follow(index: &PlanIndex<'_>, target: &mut RowTarget<Lease>) -> Option<TargetChange> {
    let tables = &index.snapshot.sources.leases;
    let table = tables.iter().find(|table| table.source.table == target.table)?;
    let taken_at = table.section.taken_at.unwrap_or(index.snapshot.taken_at);
    let id = Arc::clone(&target.id);
    change_in(
        &table.section,
        |lease| lease.id == id,
        |lease| {
            let is_held = lease.state(taken_at) == LeaseState::Held && lease.term.is_some();
            let is_same = lease.owner == target.owner && lease.token == target.token;
            if !(is_held && is_same && is_renewal(target, lease)) {
                return Some(TargetChange::OtherRow);
            }
            target.row = lease.clone();
            None
        },
    )
}

/// A lease that expired in between was acquired again, perhaps by another process of the same name. With tokens, that
/// lease has another token.
fn is_renewal(seen: &Lease, now: &Lease) -> bool {
    let since = |then: Timestamp, now: Timestamp| (now - then).as_seconds_f64();
    let passed = seen.renewed_at.zip(now.renewed_at).map(|(then, now)| since(then, now));
    passed.zip(seen.term).is_some_and(|(passed, term)| seen.token.is_some() || passed < term)
}

pub(super) fn changed_in_redis(index: &PlanIndex<'_>, then: &RedisLease) -> Option<TargetChange> {
    let redis = &index.snapshot.sources.redis;
    let Some(now) = redis.rows.iter().find(|lease| lease.key == then.key) else {
        // Keys on a server that does not answer are not seen.
        return (redis.down() == 0 && !redis.cut).then_some(TargetChange::Gone);
    };
    (now.holder != then.holder).then_some(TargetChange::OtherRow)
}

/// Ends a lease of a table.
pub(in crate::model::plan) fn end(lease: &RowTarget<Lease>) -> RowChange<'_> {
    let RowTarget { source, is_own, .. } = lease;
    let owner = lease.owner.as_deref().unwrap_or_default();
    let (renewed, term) = (lease.renewed_at.unwrap_or_default(), lease.term.unwrap_or_default());
    let renewed = renewed.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let seen = match lease.token {
        Some(token) => format!("token = {token}"),
        None => format!("ts = '{renewed}', or a renewal of that, and expired_time = {term} s"),
    };
    let statement = Box::new(move |table: &TableShape| {
        let (id, conditions) = (id_is(&lease.id), conditions(table, lease));
        let act = if *is_own { own() } else { published(table) };
        Ok(RowStatement { id, conditions, act, done: format!("the lease of {owner} has ended") })
    });
    let (id, owner) = (shown(Some(&lease.id)), shown(Some(owner)));
    let short = format!("end lease {id} of {source} if owner = {owner} and {seen}");
    RowChange { table: lease.table, is_own: *is_own, short, statement }
}

/// A long text was truncated when it was read, and the comparison then cannot use an index.
fn id_is(id: &str) -> String {
    if id.len() < CUT && !id.contains(char::REPLACEMENT_CHARACTER) {
        return format!("t.id::text = {}", message::text(id));
    }
    is_cut("t.id::text", Some(id))
}

fn conditions(table: &TableShape, lease: &RowTarget<Lease>) -> Vec<Condition> {
    let (term, length) = match table.kind("expired_time") {
        Some(PlanColumnKind::Number) => {
            ("t.expired_time::float8", "make_interval(secs => t.expired_time::float8)")
        }
        _ => ("EXTRACT(epoch FROM t.expired_time)::float8", "t.expired_time"),
    };
    let is_over = format!("clock_timestamp() < t.ts::timestamptz + {length}");
    let mut all = vec![
        Condition::cut("its owner has changed", "t.owner::text", lease.owner.as_ref()),
        Condition::new("it has already ended", is_over),
    ];
    // Owner and token identify the lease, and a renewal changes neither.
    if let (true, Some(token)) = (table.has("token"), lease.token) {
        all.push(Condition::same("another owner acquired it", "t.token", &token.to_string()));
        return all;
    }
    // Without a token, the time distinguishes a renewal from a lease that ended and was acquired again, perhaps by another
    // process of the same name: a renewal comes before the end of the lease as seen.
    let (seen, length) = (moment(lease.renewed_at), lease.term.unwrap_or_default());
    let ends = format!("({seen} + make_interval(secs => '{length}'::float8))");
    let renewed = format!("t.ts::timestamptz >= {seen} AND t.ts::timestamptz < {ends}");
    all.push(Condition::new("it was acquired again", renewed));
    all.push(Condition::same("its term has changed", term, &format!("'{length}'::float8")));
    if table.has("token") {
        all.push(Condition::new("another owner acquired it", "t.token IS NULL"));
    }
    all
}

/// The function of locktop's own schema compares again, and no renewal can come in between.
fn own() -> RowAct {
    RowAct::Try {
        function: "lease_force_release",
        arguments: "t.id, t.owner, t.ts, t.expired_time, t.token",
        // As stored, not as read.
        columns: &["id", "owner"],
        noted: Noted {
            action: "unlocked",
            columns: "worker_id, detail",
            values: "d.owner, 'lease ' || d.id || ' of ' || d.owner || ', its owner, was ended'",
        },
    }
}

/// A lease with a term of 0 has ended, whatever its time. A time without time zone is left unchanged.
fn published(table: &TableShape) -> RowAct {
    let time = if table.kind("ts") == Some(PlanColumnKind::Zoned) { "ts = clock_timestamp(), " } else { "" };
    let zero = if table.kind("expired_time") == Some(PlanColumnKind::Number) { "0" } else { "interval '0'" };
    RowAct::Set { set: format!("{time}expired_time = {zero}"), returning: "t.id".to_owned(), noted: None }
}
