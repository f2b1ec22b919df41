//! Transactions that seem to be forgotten: no session waits for them yet, but they hold their locks and hold back vacuum.

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::observed::Observed;
use crate::model::wait_graph::Party;
use crate::text;

const CHECK: &str = "forgotten_transaction";

/// Names the oldest of each kind and counts the others. Blockers have separate findings.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    prepared(look).into_iter().chain(idle(look)).collect()
}

fn others(count: usize) -> String {
    if count > 1 { format!(", and {} more", count - 1) } else { String::new() }
}

fn prepared(look: &CheckInput<'_>) -> Option<Finding> {
    let limit = look.thresholds.idle_in_transaction;
    let blocks = look.graph.roots.iter().any(|root| matches!(root.party, Party::Prepared(_)));
    let Observed::Read(rows) = look.snapshot.prepared.observed() else { return None };
    if blocks {
        return None;
    }
    let old: Vec<_> = rows.iter().filter(|row| look.is_older(row.prepared, limit)).collect();
    let oldest = old.iter().min_by_key(|row| row.prepared)?;
    let age = look.age_text(oldest.prepared);
    let gid = text::one_line(&oldest.gid);
    let more = others(old.len());
    let summary = format!("prepared transaction '{gid}'{age} holds locks, no waiters{more}");
    let finding = Finding::new(CHECK, Severity::Warning, summary, Subject::Server);
    let finding = finding.short(format!("prepared '{}'{age}, no waiters{more}", text::fit(&gid, 24)));
    let finding = finding.about(super::prepared::remedy(oldest));
    Some(Finding { since: oldest.prepared, ..finding })
}

fn idle(look: &CheckInput<'_>) -> Option<Finding> {
    let limit = look.thresholds.idle_in_transaction;
    let Observed::Read(rows) = look.snapshot.backends.observed() else { return None };
    let blocks = |pid: i32| look.graph.roots.iter().any(|root| root.party == Party::Backend(pid));
    let idle =
        rows.iter().filter(|row| row.state.is_some_and(crate::model::backend::State::is_idle_in_transaction));
    let old: Vec<_> =
        idle.filter(|row| look.is_older(row.state_change, limit) && !blocks(row.group())).collect();
    let oldest = old.iter().min_by_key(|row| row.state_change)?;
    let age = look.age_text(oldest.state_change);
    let more = others(old.len());
    let summary = format!("{} idle in transaction{age}, no waiters{more}", oldest.pid);
    let finding = Finding::new(CHECK, Severity::Info, summary, Subject::Backend(oldest.id()));
    let finding = finding.short(format!("{} idle in xact{age}, no waiters{more}", oldest.pid));
    let finding = finding.about(look.about(oldest.pid, None)).running(look.statement(oldest.pid));
    Some(Finding { since: oldest.state_change, ..finding })
}
