//! Text for people: widths by content. Of a snapshot this has what stands above its tables; those are the panes
//! (`app::print`).

mod adapters;
mod columns;
pub mod recovery;

pub use adapters::adapters;
pub use columns::laid_out;

use crate::model::finding::{Finding, Severity, Subject};
use crate::model::output::Channel;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::text::{count, one_line};

/// Findings that are listed.
const FINDINGS: usize = 20;

/// What goes on from the line before is set in so far.
const INDENT: &str = "      ";

/// Header, what could not be read, and findings with the statements that help; none before the first snapshot.
pub fn head(view: &View) -> Option<Vec<String>> {
    let snapshot = view.snapshot.as_deref()?;
    let lines = [header(view, snapshot)].into_iter().chain(sections(snapshot)).chain(findings(view));
    Some(lines.collect())
}

/// A sentence in as many lines as it needs; a statement to copy, which is set in, on the one it is on.
pub fn broken(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if !line.starts_with(INDENT) => {
            let lines = crate::text::lines(line, width.saturating_sub(INDENT.len()).max(1));
            // What separates two parts has nothing to separate at the end of a line.
            let lines: Vec<&str> = lines.iter().map(|line| line.trim_end_matches(" ·")).collect();
            lines.join(&format!("\n{INDENT}"))
        }
        _ => line.to_owned(),
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
        lines.push(format!(
            "{number} locks are not shown: no session waits for them, and they are not advisory"
        ));
    }
    lines
}

/// `Sessions: not readable (permission denied …)`: what may not be seen is not said to be empty.
fn not_readable(what: &str, error: &str) -> String {
    format!("{what}: not readable ({})", one_line(error))
}

fn findings(view: &View) -> Vec<String> {
    let severity = |severity| match severity {
        Severity::Critical => "CRIT",
        Severity::Warning => "WARN",
        Severity::Info => "INFO",
    };
    // What could not be read has its line above or in its place; a search that failed has none.
    let has_place = |finding: &&Finding| {
        finding.check == "stale_section"
            && !matches!(finding.subject, Subject::Section("tables" | "adapters"))
    };
    let findings: Vec<_> = view.findings.iter().filter(|finding| !has_place(finding)).collect();
    let line = |finding: &&Finding| {
        let about = finding.about_in(Channel::Snapshot);
        let is_said = about.is_empty() || is_statement(finding);
        let about = if is_said { String::new() } else { format!(" · {about}") };
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
pub fn more(there_are: usize, shown: usize, what: &str) -> Option<String> {
    let left_out = there_are.checked_sub(shown).filter(|left_out| *left_out > 0)?;
    Some(format!("… and {} more {what} (--format json has all)", count(left_out as u64)))
}
