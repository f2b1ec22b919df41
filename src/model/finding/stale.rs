//! A section that could not be read.

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::sections::SectionRead;

/// One finding for each section whose last attempt failed, with the age of what is shown instead.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    look.snapshot.sections().into_iter().filter_map(|read| stale(look, read)).collect()
}

fn stale(
    look: &CheckInput<'_>,
    SectionRead { section, taken_at, error, .. }: SectionRead<'_>,
) -> Option<Finding> {
    let error = error?;
    let state = match taken_at {
        Some(taken_at) => format!("{section}:{} old", look.age_text(Some(taken_at))),
        None => format!("{section}: never read"),
    };
    let subject = Subject::Section(section);
    let finding = Finding::new("stale_section", Severity::Warning, format!("{state}, {error}"), subject);
    Some(Finding { since: taken_at, ..finding.short(state) })
}
