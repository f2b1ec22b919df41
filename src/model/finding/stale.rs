//! A section that could not be read.

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::unread::Unread;

/// One finding for each section whose last attempt failed, with the age of what is shown instead.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    look.snapshot.unread().into_iter().map(|unread| stale(look, unread)).collect()
}

fn stale(look: &CheckInput<'_>, Unread { section, taken_at, error, .. }: Unread<'_>) -> Finding {
    let state = match taken_at {
        Some(taken_at) => format!("{section}:{} old", look.age_text(Some(taken_at))),
        None => format!("{section}: never read"),
    };
    let subject = Subject::Section(section);
    let finding = Finding::new("stale_section", Severity::Warning, format!("{state}, {error}"), subject);
    Finding { since: taken_at, ..finding.short(state) }
}
