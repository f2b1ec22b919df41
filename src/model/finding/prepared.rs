//! A prepared transaction that blocks: it has no process, and must be ended by name.

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::lock::Prepared;
use crate::model::wait_graph::Party;
use crate::text;

/// Columns for a gid in the short form; a gid may have 200 characters.
const GID: usize = 24;

/// Critical if it blocks too many, or is older than a transaction may be idle.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let graph = &look.graph;
    let roots = || {
        graph.roots.iter().filter_map(|root| match root.party {
            Party::Prepared(vxid) => Some((root, vxid)),
            Party::Backend(_) => None,
        })
    };
    if roots().next().is_none() {
        return Vec::new();
    }
    let thresholds = look.thresholds;
    let mut findings: Vec<_> = roots()
        .take(LIMIT)
        .map(|(root, vxid)| {
            let row = look.index.prepared(look.snapshot, vxid);
            let since = row.and_then(|row| row.prepared);
            let old = look.is_older(since, thresholds.idle_in_transaction);
            let severity = if old || root.blocked >= thresholds.blocked {
                Severity::Critical
            } else {
                Severity::Warning
            };
            let (gid, place) = row.map_or_else(|| (vxid.to_string(), String::new()), name);
            let age = look.age_text(since);
            let promise = look.view.promise(root);
            let summary = format!("prepared transaction {gid}{place}{age}, {}", promise.words());
            let finding = Finding::new("prepared_transaction", severity, summary, Subject::Party(root.party));
            let finding = finding.short(format!(
                "prepared {}{age}, {}",
                text::fit(&text::one_line(&gid), GID),
                promise.short()
            ));
            let of = row
                .and_then(|row| row.owner.as_deref())
                .map(|owner| format!(" of {owner}"))
                .unwrap_or_default();
            let bare = row.map_or(&*gid, |row| &row.gid);
            let words = format!("prepared transaction {bare}{of}, {}", promise.words());
            let finding = finding.in_row(since, words, "").about(row.map(remedy).unwrap_or_default());
            Finding { blocked: root.blocked, since: root.longest_wait.or(since), ..finding }
                .expected(look.expected(root.party, row, root.longest_wait))
        })
        .collect();
    findings.extend(Finding::more("prepared_transaction", roots().count().saturating_sub(LIMIT)));
    findings
}

/// `in app: ROLLBACK PREPARED 'order-17'`: there is no process to terminate, and the statement works only in its database.
pub(super) fn remedy(row: &Prepared) -> String {
    let place = row.database.as_ref().map(|database| format!("in {database}: ")).unwrap_or_default();
    format!("{place}ROLLBACK PREPARED {}", text::literal(&row.gid))
}

fn name(row: &Prepared) -> (String, String) {
    let owner = row.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
    let database = row.database.as_ref().map(|database| format!(" in {database}")).unwrap_or_default();
    (format!("'{}'", row.gid), owner + &database)
}
