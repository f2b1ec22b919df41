//! A long-running transaction that blocks no session: vacuum cannot remove rows that it may still see.

use super::check_input::CheckInput;
use super::{Finding, Severity};
use crate::model::backend::{Backend, State};
use crate::model::observed::Observed;
use crate::model::wait_graph::Party;

const CHECK: &str = "long_transaction";

/// Seconds from which on it is reported.
const LONG: f64 = 1_800.0;

/// The oldest active transaction; one that is idle in transaction, or that blocks others, has a separate finding.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let Observed::Read(rows) = look.snapshot.backends.observed() else { return Vec::new() };
    let blocks = |row: &Backend| look.graph.blocks(Party::Backend(row.group())) > 0;
    let mut long: Vec<&Backend> = rows
        .iter()
        .filter(|row| {
            row.state == Some(State::Active) && row.pid == row.group() && look.is_older(row.xact_start, LONG)
        })
        .filter(|row| !blocks(row))
        .collect();
    long.sort_by_key(|row| (row.xact_start, row.pid));
    let Some(oldest) = long.first() else { return Vec::new() };
    let more = match long.len() - 1 {
        0 => String::new(),
        1 => "; 1 other is also long".to_owned(),
        others => format!("; {others} others are also long"),
    };
    let age = look.age_text(oldest.xact_start);
    let horizon = if oldest.backend_xmin.is_some() {
        "; vacuum cannot remove rows that were deleted since it began"
    } else {
        ""
    };
    let summary =
        format!("{} active, transaction open for{age}, blocks no session{horizon}{more}", oldest.pid);
    let finding = Finding::new(CHECK, Severity::Info, summary, look.subject(Party::Backend(oldest.pid)));
    let finding = finding.short(format!("{} active{age}, blocks no session{more}", oldest.pid));
    let finding = finding.about(look.about(oldest.pid, None)).running(look.statement(oldest.pid));
    vec![Finding { since: oldest.xact_start, ..finding }]
}
