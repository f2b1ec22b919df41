//! Id generators that are ahead of the server's clock: the clock was set back, or the table is from a server whose clock is
//! ahead.

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::id_generator;
use crate::text;

/// One finding for each generator that is ahead by more than `[thresholds] id_ahead`.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let limit = look.thresholds.id_ahead;
    let ahead = || {
        id_generator::rows(look.snapshot)
            .filter_map(move |row| Some((row, row.ahead.filter(|seconds| *seconds > limit)?)))
    };
    let finding = |(row, seconds): (id_generator::GeneratorRow<'_>, f64)| {
        let (worker, by) = (row.id.worker, text::duration(seconds));
        let source = text::one_line(row.source);
        let summary = format!(
            "id generator {worker} in {source} is {by} ahead of the server's clock: its ids wait for the clock, or repeat"
        );
        Finding::new("id_ahead", Severity::Warning, summary, Subject::Generator(row.id))
            .short(format!("id generator {worker} is {by} ahead of the clock"))
    };
    let mut findings: Vec<Finding> = ahead().take(LIMIT).map(finding).collect();
    findings.extend(Finding::more("id_ahead", ahead().count().saturating_sub(LIMIT)));
    findings
}
