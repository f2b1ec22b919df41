//! Sections that are not known.

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::sections::SectionRead;

/// One finding for each table, or section without one, whose last attempt failed, with the age of the rows that are shown instead. Job systems
/// of others and Redis servers have findings of their own.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let mut groups: Vec<Vec<SectionRead<'_>>> = Vec::new();
    let unread = look.snapshot.unread();
    for read in unread.into_iter().filter(|read| read.section != "redis" && read.part.is_none()) {
        if read.section == "adapters" && read.of.is_some() {
            continue;
        }
        let is_same = |group: &&mut Vec<SectionRead<'_>>| {
            group.first().is_some_and(|first| {
                first.of.is_some() && (&first.of, &first.error) == (&read.of, &read.error)
            })
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(read),
            None => groups.push(vec![read]),
        }
    }
    let more = Finding::more("stale_section", groups.len().saturating_sub(LIMIT));
    groups.iter().take(LIMIT).filter_map(|group| stale(look, group)).chain(more).collect()
}

/// `cannot read leases of public.distlock: permission denied for table distlock; …; the rows shown are 12s old`
fn stale(look: &CheckInput<'_>, group: &[SectionRead<'_>]) -> Option<Finding> {
    let first = group.first()?;
    let sections: Vec<_> = group.iter().map(|read| read.section.replace('_', " ")).collect();
    let of = first.of.as_deref().map(|of| format!(" of {of}")).unwrap_or_default();
    let what = match first.section {
        "tables" => "cannot search for tables of tasks and leases".to_owned(),
        "adapters" => "cannot search for job systems".to_owned(),
        _ => format!("cannot read {}{of}", sections.join(" and ")),
    };
    let since = group.iter().map(|read| read.taken_at).min().flatten();
    let age = since.map(|since| format!("{} old", crate::text::duration(look.age(since))));
    let (old, shown) = match &age {
        Some(age) => (format!(", {age}"), format!("; the rows shown are {age}")),
        None => Default::default(),
    };
    let reason = first.error.as_deref()?;
    let summary = format!("{what}: {reason}{shown}");
    let finding = Finding::new("stale_section", Severity::Warning, summary, Subject::Section(first.section));
    Some(Finding { since, ..finding.short(format!("{what}{old}")) })
}
