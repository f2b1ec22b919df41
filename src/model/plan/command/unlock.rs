//! `U`: end a lease of another owner by compare-and-set on the owner as seen. The holder may keep renewing it meanwhile.
//!
//! The row stays, with its owner. The holder is not notified: it finds out when it renews, or when a fenced write is
//! rejected. In a table without tokens, a holder that renews by name gets the lease back.

use super::{ChosenVerb, Command, Definition, Verb};
use crate::model::lease::LeaseState;
use crate::model::plan::question::{Chosen, only};
use crate::model::plan::rows::{
    ColumnKind, Condition, FoundTable, Noted, RowAct, RowChange, RowStatement, can_unlock,
};
use crate::model::plan::{LeaseTarget, PlanContext};
use crate::model::row_id::RowId;
use locktop_tasks::literal::CUT;
use locktop_tasks::message::{is_cut, moment, shown, text};

pub(super) const UNLOCK_COMMAND: Command = Command {
    name: "unlock",
    keys: &["U"],
    short: "end lease",
    help: "end a lease, even if its owner is alive",
    purpose: "ends a lease",
    is_local: false,
    applies: is_held,
    choose: |_, rows| choose(rows),
};

// A lease may be in Redis, so a standby is not a reason to refuse.
pub(super) const UNLOCK: Definition =
    Definition { writes: false, lease: Some(change), ..Definition::of("unlock", "end", "ended") };

fn is_held(context: &PlanContext<'_>, row: RowId) -> bool {
    match row {
        RowId::Lease(id) => {
            let mut leases = context.view.leases.rows.iter();
            leases.any(|row| row.id == id && row.state == LeaseState::Held)
        }
        RowId::OtherLease(id) => can_unlock(context, id),
        _ => false,
    }
}

fn choose(rows: &[RowId]) -> Option<ChosenVerb> {
    let leases = only(rows, |row| matches!(row, RowId::Lease(_)));
    let rows = leases.or_else(|| only(rows, |row| matches!(row, RowId::OtherLease(_))))?;
    Some((Verb::Unlock, Chosen::Rows(rows)))
}

fn change(lease: &LeaseTarget) -> RowChange<'_> {
    let LeaseTarget { source, is_own, .. } = lease;
    let (id, owner) = (shown(Some(&lease.id)), shown(Some(&lease.owner)));
    let renewed = lease.renewed_at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
    let seen = match lease.token {
        Some(token) => format!("token = {token}"),
        None => format!("ts = '{renewed}', or a renewal of that, and expired_time = {} s", lease.term),
    };
    let statement = Box::new(|table: &FoundTable| {
        let (id, conditions) = (id_is(&lease.id), conditions(table, lease));
        let act = if *is_own { own() } else { published(table) };
        Ok(RowStatement { id, conditions, act, done: format!("the lease of {} has ended", lease.owner) })
    });
    let short = format!("end lease {id} of {source} if owner = {owner} and {seen}");
    RowChange { table: lease.table, is_own: *is_own, short, statement }
}

/// A long text was truncated when it was read, and the comparison then cannot use an index.
fn id_is(id: &str) -> String {
    if id.len() < CUT && !id.contains(char::REPLACEMENT_CHARACTER) {
        return format!("t.id::text = {}", text(id));
    }
    is_cut("t.id::text", Some(id))
}

fn conditions(table: &FoundTable, lease: &LeaseTarget) -> Vec<Condition> {
    let (term, length) = match table.kind("expired_time") {
        Some(ColumnKind::Number) => {
            ("t.expired_time::float8", "make_interval(secs => t.expired_time::float8)")
        }
        _ => ("EXTRACT(epoch FROM t.expired_time)::float8", "t.expired_time"),
    };
    let is_over = format!("clock_timestamp() < t.ts::timestamptz + {length}");
    let mut all = vec![
        Condition::cut("its owner has changed", "t.owner::text", Some(&lease.owner)),
        Condition::new("it has already ended", is_over),
    ];
    // Owner and token identify the lease, and a renewal changes neither.
    if let (true, Some(token)) = (table.has("token"), lease.token) {
        all.push(Condition::same("another owner acquired it", "t.token", &token.to_string()));
        return all;
    }
    // Without a token, the time distinguishes a renewal from a lease that ended and was acquired again, perhaps by another
    // process of the same name: a renewal comes before the end of the lease as seen.
    let (seen, length) = (moment(Some(lease.renewed_at)), lease.term);
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
fn published(table: &FoundTable) -> RowAct {
    let time = if table.kind("ts") == Some(ColumnKind::Zoned) { "ts = clock_timestamp(), " } else { "" };
    let zero = if table.kind("expired_time") == Some(ColumnKind::Number) { "0" } else { "interval '0'" };
    RowAct::Set { set: format!("{time}expired_time = {zero}"), returning: "t.id".to_owned(), noted: None }
}
