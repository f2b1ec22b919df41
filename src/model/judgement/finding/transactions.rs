//! Prepared, forgotten and long-running transactions.

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject, listed};
use crate::model::backend::{Backend, State};
use crate::model::lock::Prepared;
use crate::model::section::Observed;
use crate::model::wait_graph::Party;
use crate::order::SortExt;
use crate::text;

/// Columns for a gid in the short form; a gid may have 200 characters.
const GID: usize = 24;

/// A prepared transaction that blocks: it has no process, and must be ended by name.
///
/// Critical if it blocks too many, or is older than a transaction may be idle.
pub(super) fn blocking_prepared(input: &CheckInput<'_>) -> Vec<Finding> {
    let roots = input.graph.roots.iter().filter_map(|root| match root.party {
        Party::Prepared(vxid) => Some((root, vxid)),
        Party::Backend(_) => None,
    });
    let thresholds = input.thresholds;
    listed("prepared_transaction", roots, |(root, vxid)| {
        let row = input.index.prepared(input.snapshot, vxid);
        let since = row.and_then(|row| row.prepared);
        let old = input.is_older(since, thresholds.idle_in_transaction);
        let severity =
            if old || root.blocked >= thresholds.blocked { Severity::Critical } else { Severity::Warning };
        let (gid, place) = row.map_or_else(|| (vxid.to_string(), String::new()), prepared_name);
        let age = input.age_text(since);
        let promise = input.view.promise(root);
        let summary = format!("prepared transaction {gid}{place}{age}, {}", promise.words());
        let finding = Finding::new("prepared_transaction", severity, summary, Subject::Party(root.party));
        let finding = finding.short(format!(
            "prepared {}{age}, {}",
            text::fit(&text::one_line(&gid), GID),
            promise.short()
        ));
        let of =
            row.and_then(|row| row.owner.as_deref()).map(|owner| format!(" of {owner}")).unwrap_or_default();
        let bare = row.map_or(&*gid, |row| &row.gid);
        let words = format!("prepared transaction {bare}{of}, {}", promise.words());
        let finding = finding.in_row(since, words, "").about(row.map(remedy).unwrap_or_default());
        Finding { blocked: root.blocked, since: root.longest_wait.or(since), ..finding }
            .expected(input.expected(root.party, row, root.longest_wait))
    })
}

/// `in app: ROLLBACK PREPARED 'order-17'`: there is no process to terminate, and the statement works only in its database.
fn remedy(row: &Prepared) -> String {
    let place = row.database.as_ref().map(|database| format!("in {database}: ")).unwrap_or_default();
    format!("{place}ROLLBACK PREPARED {}", text::literal(&row.gid))
}

fn prepared_name(row: &Prepared) -> (String, String) {
    let owner = row.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
    let database = row.database.as_ref().map(|database| format!(" in {database}")).unwrap_or_default();
    (format!("'{}'", row.gid), owner + &database)
}

const FORGOTTEN: &str = "forgotten_transaction";

/// Transactions that seem to be forgotten: no session waits for them yet, but they hold their locks and hold back vacuum.
///
/// Names the oldest of each kind and counts the others. Blockers have separate findings.
pub(super) fn forgotten(input: &CheckInput<'_>) -> Vec<Finding> {
    forgotten_prepared(input).into_iter().chain(forgotten_idle(input)).collect()
}

fn others(count: usize) -> String {
    if count > 1 { format!(", and {} more", count - 1) } else { String::new() }
}

fn forgotten_prepared(input: &CheckInput<'_>) -> Option<Finding> {
    let limit = input.thresholds.idle_in_transaction;
    let blocks = input.graph.roots.iter().any(|root| matches!(root.party, Party::Prepared(_)));
    let Observed::Read(rows) = input.snapshot.prepared.observed() else { return None };
    if blocks {
        return None;
    }
    let old: Vec<_> = rows.iter().filter(|row| input.is_older(row.prepared, limit)).collect();
    let oldest = old.iter().min_by_key(|row| row.prepared)?;
    let age = input.age_text(oldest.prepared);
    let gid = text::one_line(&oldest.gid);
    let more = others(old.len());
    let summary = format!("prepared transaction '{gid}'{age} holds locks, no waiters{more}");
    let finding = Finding::new(FORGOTTEN, Severity::Warning, summary, Subject::Server);
    let finding = finding.short(format!("prepared '{}'{age}, no waiters{more}", text::fit(&gid, 24)));
    let finding = finding.about(remedy(oldest));
    Some(Finding { since: oldest.prepared, ..finding })
}

fn forgotten_idle(input: &CheckInput<'_>) -> Option<Finding> {
    let limit = input.thresholds.idle_in_transaction;
    let Observed::Read(rows) = input.snapshot.backends.observed() else { return None };
    let blocks = |pid: i32| input.graph.roots.iter().any(|root| root.party == Party::Backend(pid));
    let idle = rows.iter().filter(|row| row.state.is_some_and(State::is_idle_in_transaction));
    let old: Vec<_> =
        idle.filter(|row| input.is_older(row.state_change, limit) && !blocks(row.group())).collect();
    let oldest = old.iter().min_by_key(|row| row.state_change)?;
    let age = input.age_text(oldest.state_change);
    let more = others(old.len());
    let summary = format!("{} idle in transaction{age}, no waiters{more}", oldest.pid);
    let finding = Finding::new(FORGOTTEN, Severity::Info, summary, Subject::Backend(oldest.id()));
    let finding = finding.short(format!("{} idle in xact{age}, no waiters{more}", oldest.pid));
    let finding = finding.about(input.about(oldest.pid, None)).running(input.statement(oldest.pid));
    Some(Finding { since: oldest.state_change, ..finding })
}

const LONG_TRANSACTION: &str = "long_transaction";

/// Seconds from which on it is reported.
const LONG: f64 = 1_800.0;

/// A long-running transaction that blocks no session: vacuum cannot remove rows that it may still see.
///
/// The oldest active transaction; one that is idle in transaction, or that blocks others, has a separate finding.
pub(super) fn long_running(input: &CheckInput<'_>) -> Vec<Finding> {
    let Observed::Read(rows) = input.snapshot.backends.observed() else { return Vec::new() };
    let blocks = |row: &Backend| input.graph.blocks(Party::Backend(row.group())) > 0;
    let mut long: Vec<&Backend> = rows
        .iter()
        .filter(|row| {
            row.state == Some(State::Active) && row.pid == row.group() && input.is_older(row.xact_start, LONG)
        })
        .filter(|row| !blocks(row))
        .collect();
    long.order_by_key(|row| (row.xact_start, row.pid));
    let Some(oldest) = long.first() else { return Vec::new() };
    let more = match long.len() - 1 {
        0 => String::new(),
        1 => "; 1 other is also long".to_owned(),
        others => format!("; {others} others are also long"),
    };
    let age = input.age_text(oldest.xact_start);
    let horizon = if oldest.backend_xmin.is_some() {
        "; vacuum cannot remove rows that were deleted since it began"
    } else {
        ""
    };
    let summary =
        format!("{} active, transaction open for{age}, blocks no session{horizon}{more}", oldest.pid);
    let finding =
        Finding::new(LONG_TRANSACTION, Severity::Info, summary, input.subject(Party::Backend(oldest.pid)));
    let finding = finding.short(format!("{} active{age}, blocks no session{more}", oldest.pid));
    let finding = finding.about(input.about(oldest.pid, None)).running(input.statement(oldest.pid));
    vec![Finding { since: oldest.xact_start, ..finding }]
}
