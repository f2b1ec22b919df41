use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject};
use crate::model::Timestamp;
use crate::model::sections::SectionRead;

/// From this number on, tables that fail for the same reason are one finding.
const MANY: usize = 3;

const NAMED: usize = 3;

struct Unread<'a> {
    section: &'static str,
    /// `cannot read leases`, without the table.
    what: String,
    of: Option<&'a str>,
    since: Option<Timestamp>,
    reason: &'a str,
}

impl Unread<'_> {
    /// The reason without the table's name, so that equal reasons of different tables match.
    fn kind(&self) -> (&str, String) {
        let reason = self.of.map_or_else(|| self.reason.to_owned(), |of| self.reason.replace(of, "it"));
        (&self.what, reason)
    }
}

/// One finding for each table, or section without one, whose last reading failed, with the age of the rows shown instead.
/// Tables that fail for the same reason are one finding: a role may have a thousand of them. Job systems of others and
/// Redis servers have separate findings.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let sections = look.snapshot.unread();
    let unread = unread(&sections);
    let mut kinds: Vec<((&str, String), Vec<&Unread<'_>>)> = Vec::new();
    let mut places = rustc_hash::FxHashMap::default();
    for one in &unread {
        let at = *places.entry(one.kind()).or_insert_with(|| {
            kinds.push((one.kind(), Vec::new()));
            kinds.len() - 1
        });
        if let Some((_, all)) = kinds.get_mut(at) {
            all.push(one);
        }
    }
    let findings = kinds.iter().flat_map(|((_, reason), all)| match all.len() {
        ..MANY => all.iter().map(|one| stale(look, one)).collect(),
        _ => together(look, all, reason).into_iter().collect::<Vec<_>>(),
    });
    let mut findings: Vec<_> = findings.collect();
    let more = Finding::more("stale_section", findings.len().saturating_sub(LIMIT));
    findings.truncate(LIMIT);
    findings.extend(more);
    findings
}

fn unread<'a>(sections: &'a [SectionRead<'_>]) -> Vec<Unread<'a>> {
    let mut groups: Vec<Vec<&SectionRead<'_>>> = Vec::new();
    let mut places = rustc_hash::FxHashMap::default();
    for read in sections {
        // Job systems and Redis have separate findings; a failed search of the catalog is reported here.
        if read.section == "redis" || (read.section == "adapters" && read.of.is_some()) {
            continue;
        }
        let name = read.of.as_deref().unwrap_or(read.section);
        let at = *places.entry((name, read.error.as_deref())).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            group.push(read);
        }
    }
    groups.iter().filter_map(|group| of_group(group)).collect()
}

fn of_group<'a>(group: &[&'a SectionRead<'_>]) -> Option<Unread<'a>> {
    let first = group.first()?;
    let sections: Vec<_> = group.iter().map(|read| read.section.replace('_', " ")).collect();
    let what = match first.section {
        "tables" => "cannot search for tables of tasks and leases".to_owned(),
        "adapters" => "cannot search for job systems".to_owned(),
        _ => format!("cannot read {}", sections.join(" and ")),
    };
    Some(Unread {
        section: first.section,
        what,
        of: first.of.as_deref(),
        since: group.iter().map(|read| read.taken_at).min().flatten(),
        reason: first.error.as_deref()?,
    })
}

/// `cannot read leases of public.distlock: permission denied for table distlock; …; the rows shown are 12s old`
fn stale(look: &CheckInput<'_>, one: &Unread<'_>) -> Finding {
    let of = one.of.map(|of| format!(" of {of}")).unwrap_or_default();
    new(look, one.section, &format!("{}{of}", one.what), one.reason, one.since)
}

/// `cannot read leases of 1,000 tables (a.distlock, b.distlock, c.distlock, …): it is not read: mallory is not trusted`
fn together(look: &CheckInput<'_>, all: &[&Unread<'_>], reason: &str) -> Option<Finding> {
    let first = all.first()?;
    let names: Vec<_> = all.iter().filter_map(|one| one.of).take(NAMED).collect();
    let more = if all.len() > names.len() { ", …" } else { "" };
    let count = crate::text::count(all.len() as u64);
    let what = format!("{} of {count} tables ({}{more})", first.what, names.join(", "));
    Some(new(look, first.section, &what, reason, all.iter().map(|one| one.since).min().flatten()))
}

fn new(
    look: &CheckInput<'_>,
    section: &'static str,
    what: &str,
    reason: &str,
    since: Option<Timestamp>,
) -> Finding {
    let age = since.map(|since| format!("{} old", crate::text::duration(look.age(since))));
    let (old, shown) =
        age.map_or_else(Default::default, |age| (format!(", {age}"), format!("; the rows shown are {age}")));
    let summary = format!("{what}: {reason}{shown}");
    let finding = Finding::new("stale_section", Severity::Warning, summary, Subject::Section(section));
    Finding { since, ..finding.short(format!("{what}{old}")) }
}
