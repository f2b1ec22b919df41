use super::check_input::{CheckInput, parties_text};
use super::{Finding, LIMIT, Severity};
use crate::model::words;

/// A cycle of the wait graph: a deadlock that the server has not broken yet (it checks after `deadlock_timeout`).
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let cycles = &look.graph.cycles;
    let listed = cycles.iter().take(LIMIT).filter_map(|cycle| {
        let parties = parties_text(cycle);
        let subject = look.subject(*cycle.first()?);
        let summary = format!("deadlock: {parties} wait for each other");
        let finding = Finding::new("cycle", Severity::Critical, summary, subject);
        let blocked = u32::try_from(cycle.len()).unwrap_or(u32::MAX);
        let who = cycle.iter().filter_map(|party| Some(words::who(look.backend(party.pid())?)));
        let finding = finding.about(who.take(4).collect::<Vec<_>>().join(" and "));
        Some(Finding { blocked, help: Some("cancel"), ..finding })
    });
    listed.chain(Finding::more("cycle", cycles.len().saturating_sub(LIMIT))).collect()
}
