//! The server and what is read of it: connections, growth, unread sections, rights, and names.

use std::collections::BTreeSet;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::check_input::CheckInput;
use super::{Finding, LIMIT, Severity, Subject, listed};
use crate::model::sections::SectionRead;
use crate::model::table_rows::Growth;
use crate::model::{Text, Timestamp};
use crate::text::{self, count};

/// The default of `superuser_reserved_connections`: not available to ordinary clients.
const RESERVED: u32 = 3;

/// A warning from the threshold on; critical if only the reserved connections are left.
pub(super) fn connections(input: &CheckInput<'_>) -> Vec<Finding> {
    let Some(server) = input.snapshot.server() else { return Vec::new() };
    if !input.snapshot.backends.is_known() {
        return Vec::new();
    }
    let (used, max) = (server.connections, server.max_connections);
    if max == 0 || f64::from(used) < f64::from(max) * input.thresholds.connections {
        return Vec::new();
    }
    let severity = if used.saturating_add(RESERVED) >= max { Severity::Critical } else { Severity::Warning };
    let summary = format!("{} of {} connections are in use", count(used.into()), count(max.into()));
    vec![Finding::new("connections", severity, summary, Subject::Server)]
}

/// Expired rows that a daily purge may leave until its next run.
const OLD: u64 = 10_000;
/// Number of rows from which on a log without a retention is large.
const LARGE: u64 = 1_000_000;

/// One finding for each log that has outgrown its retention, or is large without one.
pub(super) fn growth(input: &CheckInput<'_>) -> Vec<Finding> {
    let snapshot = input.snapshot;
    let tasks = snapshot.task_sets.iter().filter(|set| set.tables.own_keys);
    let logs = tasks.filter_map(|set| Some((set.tables.executions.as_deref()?, set.tables.growth)));
    let queues = snapshot.sources.counts.iter().filter(|table| table.source.own_keys);
    let queues = queues.map(|table| (&*table.source.name, table.source.growth));
    logs.chain(queues).filter_map(|(name, growth)| growth_finding(name, growth)).collect()
}

fn growth_finding(table: &str, growth: Growth) -> Option<Finding> {
    let rows = |number| text::count_short(number);
    let (severity, summary, short) = match growth {
        Growth { old: Some(old), .. } if old >= OLD => (
            Severity::Warning,
            format!("{table}: about {} rows are past their retention; locktop schema purge", rows(old)),
            format!("{table}: about {} rows past retention", rows(old)),
        ),
        Growth { is_limited: false, rows: all, .. } if all >= LARGE => (
            Severity::Info,
            format!(
                "{table} has about {} rows and no retention; locktop schema purge --keep 30d removes old ones",
                rows(all)
            ),
            format!("{table}: about {} rows, no retention", rows(all)),
        ),
        _ => return None,
    };
    Some(Finding::new("log_growth", severity, summary, Subject::Server).short(short))
}

/// From this number on, tables that fail for the same reason are one finding.
const MANY: usize = 3;

const NAMED: usize = 3;

struct UnreadSection<'a> {
    section: &'static str,
    /// `cannot read leases`, without the table.
    what: String,
    of: Option<&'a str>,
    since: Option<Timestamp>,
    reason: &'a str,
}

impl UnreadSection<'_> {
    /// The reason without the table's name, so that equal reasons of different tables match.
    fn kind(&self) -> (&str, String) {
        let reason = self.of.map_or_else(|| self.reason.to_owned(), |of| self.reason.replace(of, "it"));
        (&self.what, reason)
    }
}

/// One finding for each table, or section without one, whose last reading failed, with the age of the rows shown instead.
/// Tables that fail for the same reason are one finding: a role may have a thousand of them. Job systems of others and
/// Redis servers have separate findings.
pub(super) fn stale_sections(input: &CheckInput<'_>) -> Vec<Finding> {
    let sections = input.snapshot.unread();
    let unread = unread(&sections);
    let kinds = grouped(unread.iter(), UnreadSection::kind);
    let findings = kinds.iter().flat_map(|((_, reason), all)| match all.len() {
        ..MANY => all.iter().map(|one| stale(input, one)).collect(),
        _ => together(input, all, reason).into_iter().collect::<Vec<_>>(),
    });
    listed("stale_section", findings, |finding| finding)
}

/// Groups of rows with the same key, in the order of their first rows.
fn grouped<'a, T, K: Hash + Eq + Clone>(
    rows: impl Iterator<Item = &'a T>,
    key: impl Fn(&'a T) -> K,
) -> Vec<(K, Vec<&'a T>)> {
    let mut groups: Vec<(K, Vec<&T>)> = Vec::new();
    let mut places = FxHashMap::default();
    for row in rows {
        let key = key(row);
        let at = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(at) {
            Some((_, group)) => group.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    groups
}

fn unread<'a>(sections: &'a [SectionRead<'_>]) -> Vec<UnreadSection<'a>> {
    // Job systems and Redis have separate findings; a failed search of the catalog is reported here.
    let is_apart = |read: &&SectionRead<'_>| {
        read.section == "redis" || (read.section == "adapters" && read.of.is_some())
    };
    let name = |read: &'a SectionRead<'_>| (read.of.as_deref().unwrap_or(read.section), read.error);
    let groups = grouped(sections.iter().filter(|read| !is_apart(read)), name);
    groups.iter().filter_map(|(_, group)| of_group(group)).collect()
}

fn of_group<'a>(group: &[&'a SectionRead<'_>]) -> Option<UnreadSection<'a>> {
    let first = group.first()?;
    let sections: Vec<_> = group.iter().map(|read| read.section.replace('_', " ")).collect();
    let what = match first.section {
        "tables" => "cannot search for tables of tasks and leases".to_owned(),
        "adapters" => "cannot search for job systems".to_owned(),
        _ => format!("cannot read {}", sections.join(" and ")),
    };
    Some(UnreadSection {
        section: first.section,
        what,
        of: first.of.as_deref(),
        since: group.iter().map(|read| read.taken_at).min().flatten(),
        reason: first.error?,
    })
}

/// `cannot read leases of public.distlock: permission denied for table distlock; …; the rows shown are 12s old`
fn stale(input: &CheckInput<'_>, one: &UnreadSection<'_>) -> Finding {
    let of = one.of.map(|of| format!(" of {of}")).unwrap_or_default();
    stale_finding(input, one.section, &format!("{}{of}", one.what), one.reason, one.since)
}

/// `cannot read leases of 1,000 tables (a.distlock, b.distlock, c.distlock, …): it is not read: mallory is not trusted`
fn together(input: &CheckInput<'_>, all: &[&UnreadSection<'_>], reason: &str) -> Option<Finding> {
    let first = all.first()?;
    let names: Vec<_> = all.iter().filter_map(|one| one.of).take(NAMED).collect();
    let more = if all.len() > names.len() { ", …" } else { "" };
    let count = crate::text::count(all.len() as u64);
    let what = format!("{} of {count} tables ({}{more})", first.what, names.join(", "));
    Some(stale_finding(input, first.section, &what, reason, all.iter().map(|one| one.since).min().flatten()))
}

fn stale_finding(
    input: &CheckInput<'_>,
    section: &'static str,
    what: &str,
    reason: &str,
    since: Option<Timestamp>,
) -> Finding {
    let age = since.map(|since| format!("{} old", crate::text::duration(input.age(since))));
    let (old, shown) =
        age.map_or_else(Default::default, |age| (format!(", {age}"), format!("; the rows shown are {age}")));
    let summary = format!("{what}: {reason}{shown}");
    let finding = Finding::new("stale_section", Severity::Warning, summary, Subject::Section(section));
    Finding { since, ..finding.short(format!("{what}{old}")) }
}

/// Names the grant that would show the activity of other roles (`pg_read_all_stats`; "Predefined Roles" in the
/// documentation).
pub(super) fn hidden_activity(input: &CheckInput<'_>) -> Vec<Finding> {
    let Some(server) = input.snapshot.server().filter(|server| !server.sees_all) else {
        return Vec::new();
    };
    let role = server.user.replace('"', "\"\"");
    let summary = format!("other roles' activity is hidden: GRANT pg_read_all_stats TO \"{role}\"");
    let finding = Finding::new("hidden_activity", Severity::Info, summary, Subject::Server);
    vec![finding.short("other roles' activity is hidden: needs pg_read_all_stats")]
}

/// Tables of untrusted roles that precede others of the same name in the search path.
///
/// One finding for each such table. locktop reads both tables; an application that uses the unqualified name may find the
/// wrong one.
pub(super) fn hidden_tables(input: &CheckInput<'_>) -> Vec<Finding> {
    let sets = input.snapshot.task_sets.iter().map(|set| (&*set.tables.schedules, &set.tables.owner));
    let tables = input.snapshot.sources.sections().map(|(_, source, ..)| (&*source.name, &source.owner));
    let hiding: BTreeSet<_> = sets
        .chain(tables)
        .filter_map(|(name, owner)| Some((name, owner.stranger.as_deref()?, owner.hides.as_deref()?)))
        .collect();
    hiding.into_iter().map(|(name, owner, hides)| hidden_table(name, owner, hides)).take(LIMIT).collect()
}

fn hidden_table(name: &str, owner: &str, hides: &str) -> Finding {
    let short = format!("{name} of {owner} is before {hides} on the search path");
    let summary = format!("{short}: {owner} is not trusted; both are read");
    Finding::new("hidden_table", Severity::Info, summary, Subject::Server).short(short)
}

/// One finding for each note: a query of the config by its position there, and why it returned nothing.
pub fn lock_name_notes(notes: &[Text]) -> Vec<Finding> {
    let finding = |note: &Text| Finding::new("lock_name_query", Severity::Info, note, Subject::Server);
    notes.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_past_its_retention_or_large_without_one_is_reported() {
        let of =
            |growth| growth_finding("locktop.task_execution_log", growth).map(|it| it.summary.to_string());
        let past = Growth { rows: 50_000, is_limited: true, old: Some(12_000) };
        let expected =
            "locktop.task_execution_log: about 12k rows are past their retention; locktop schema purge";
        assert_eq!(of(past).as_deref(), Some(expected));
        assert_eq!(of(Growth { old: Some(9_999), ..past }), None);
        assert_eq!(of(Growth { rows: 2_300_000, old: None, is_limited: true }), None);
        let large = Growth { rows: 2_300_000, ..Growth::default() };
        let expected = "locktop.task_execution_log has about 2.3M rows and no retention; \
                    locktop schema purge --keep 30d removes old ones";
        assert_eq!(of(large).as_deref(), Some(expected));
        assert_eq!(of(Growth { rows: 999_999, ..large }), None);
    }
}
