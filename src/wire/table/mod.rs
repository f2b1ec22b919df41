//! The snapshot for people: plain text, widths by content.

mod adapters;
mod advisory;
mod columns;
mod forest;
mod leases;
mod others;
mod queue;
pub mod recovery;
mod tasks;

pub use adapters::adapters;

use crate::model::finding::{Finding, Severity, Subject};
use crate::model::snapshot::Snapshot;
use crate::model::systems::TableRows;
use crate::model::view::View;
use crate::text::{count, fit, one_line};
use crate::wire::gids::Gids;
use crate::wire::words::Words;

/// Findings that are listed.
const FINDINGS: usize = 20;

/// What goes on from the line before is set in so far.
const INDENT: &str = "      ";

/// Header, findings, the blocking forest, the advisory locks, the tasks, the leases, the work queue, and job systems of others; none before the first snapshot. Where a
/// `width` is given, in columns, what is said is broken between words, rows are cut, and statements to copy are left as they are.
#[must_use]
pub fn render(view: &View, width: Option<usize>) -> Option<String> {
    let snapshot = view.snapshot.as_deref()?;
    let words = Words::of(snapshot, &view.index, &view.lock_names);
    let gids = Gids::of(snapshot, &view.index);
    let mut said = vec![header(view, snapshot)];
    said.extend(sections(snapshot));
    said.extend(findings(view));
    let mut out: String = said.iter().map(|line| whole(line, width)).collect();
    let mut lines = Vec::new();
    if snapshot.locks.error.is_none() {
        lines.push(String::new());
        lines.extend(forest::lines(view, snapshot, &words, &gids, width));
        lines.push(String::new());
        lines.extend(advisory::lines(view, snapshot, &words));
    }
    lines.extend(tasks::lines(view, snapshot));
    lines.extend(leases::lines(view, snapshot));
    lines.extend(queue::lines(view, snapshot));
    let limits = unread("Rate limits", &snapshot.systems.limits);
    lines.extend(limits.into_iter().chain(unread("Id generators", &snapshot.systems.generators)));
    lines.extend(others::lines(view, snapshot));
    for line in lines {
        match width {
            // The grant that would help stands at its end.
            Some(width) if !line.contains(NOT_READABLE) => {
                out.push_str(fit(&line, width).trim_end());
                out.push('\n');
            }
            width => out.push_str(&whole(line.trim_end(), width)),
        }
    }
    Some(out)
}

/// Who waits for whom, without what else there is; none where that is not known.
#[must_use]
pub fn chains(view: &View, width: Option<usize>) -> Option<Vec<String>> {
    let snapshot = view.snapshot.as_deref().filter(|snapshot| snapshot.locks.error.is_none())?;
    let words = Words::of(snapshot, &view.index, &view.lock_names);
    let gids = Gids::of(snapshot, &view.index);
    Some(forest::lines(view, snapshot, &words, &gids, width))
}

/// A sentence in as many lines as it needs; a statement to copy, which is set in, on the one it is on.
fn whole(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if !line.starts_with(INDENT) => {
            let lines = crate::text::lines(line, width.saturating_sub(INDENT.len()).max(1));
            // What separates two parts has nothing to separate at the end of a line.
            let lines: Vec<&str> = lines.iter().map(|line| line.trim_end_matches(" ·")).collect();
            lines.join(&format!("\n{INDENT}")) + "\n"
        }
        _ => format!("{line}\n"),
    }
}

fn header(view: &View, snapshot: &Snapshot) -> String {
    let at = snapshot.taken_at.format("%Y-%m-%d %H:%M:%S UTC");
    let waiting = view.graph.waiting;
    let Some(server) = snapshot.server() else {
        return format!("server unknown · {waiting} waiting · {at}");
    };
    let role = if server.in_recovery { "standby" } else { "primary" };
    let pooled = server.pooling.words().map(|words| format!(" via {words}")).unwrap_or_default();
    format!(
        "PostgreSQL {} {role}{pooled} · {waiting} waiting · {}/{} connections · {} as {} · {at}",
        one_line(&server.version),
        server.connections,
        server.max_connections,
        one_line(&server.place()),
        one_line(&server.user),
    )
}

/// What could not be read and has no place of its own below, and what was left out.
fn sections(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, error) in [
        ("Server", &snapshot.server.error),
        ("Sessions", &snapshot.backends.error),
        ("Locks", &snapshot.locks.error),
        ("Prepared transactions", &snapshot.prepared.error),
    ] {
        lines.extend(error.as_ref().map(|error| not_readable(name, error)));
    }
    if snapshot.locks_omitted > 0 {
        let number = count(snapshot.locks_omitted);
        lines.push(format!("{number} locks are not shown: nobody waits for them and they are not advisory"));
    }
    lines
}

/// Between what could not be read and why.
const NOT_READABLE: &str = ": not readable (";

/// `Tasks: not readable (permission denied for table …)`: what may not be seen is not said to be empty.
fn not_readable(what: &str, error: &str) -> String {
    format!("{what}{NOT_READABLE}{})", one_line(error))
}

/// A line for each table that could not be read.
fn unread<T>(what: &str, tables: &[TableRows<T>]) -> Vec<String> {
    let errors = tables.iter().filter_map(|table| table.section.error.as_ref());
    errors.map(|error| not_readable(what, error)).collect()
}

fn findings(view: &View) -> Vec<String> {
    let severity = |severity| match severity {
        Severity::Critical => "CRIT",
        Severity::Warning => "WARN",
        Severity::Info => "INFO",
    };
    // That a table could not be read is said in its place.
    let findings: Vec<_> = view.findings.iter().filter(|finding| finding.check != "stale_section").collect();
    let line = |finding: &&Finding| {
        let is_said = finding.about.is_empty() || is_statement(finding);
        let about = if is_said { String::new() } else { format!(" · {}", finding.about) };
        format!("{}  {}{about}", severity(finding.severity), one_line(&finding.summary))
    };
    let shown = findings.iter().take(FINDINGS);
    let mut lines: Vec<String> =
        shown.flat_map(|finding| std::iter::once(line(finding)).chain(remedy(finding))).collect();
    lines.extend(more(findings.len(), FINDINGS, "findings"));
    lines
}

/// Whether what a finding is about is a statement to run: it is not cut.
fn is_statement(finding: &Finding) -> bool {
    finding.about.contains("ROLLBACK PREPARED")
}

/// The statement that helps against a finding, below it.
fn remedy(finding: &Finding) -> Option<String> {
    if is_statement(finding) {
        return Some(format!("{INDENT}{}", finding.about));
    }
    let Subject::Backend(id) = &finding.subject else { return None };
    let function = match finding.help? {
        "terminate" => "pg_terminate_backend",
        "cancel" => "pg_cancel_backend",
        _ => return None,
    };
    (finding.severity > Severity::Info).then(|| format!("{INDENT}SELECT {function}({});", id.pid))
}

/// The line that stands for what a list leaves out.
fn more(there_are: usize, shown: usize, what: &str) -> Option<String> {
    let left_out = there_are.checked_sub(shown).filter(|left_out| *left_out > 0)?;
    Some(format!("… and {} more {what} (--format json has all)", count(left_out as u64)))
}

#[cfg(test)]
mod tests;
