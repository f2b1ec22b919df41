//! Text for people, with column widths by content. Only what is above the tables of a snapshot is here; the tables are the
//! panes (`app::print`).

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

const FINDINGS: usize = 20;

const INDENT: &str = "      ";

/// Header, what could not be read, and findings with the statements that help; `None` before the first snapshot.
pub fn head(view: &View) -> Option<Vec<String>> {
    let snapshot = view.snapshot.as_deref()?;
    let lines = [header(view, snapshot)].into_iter().chain(sections(snapshot)).chain(findings(view));
    Some(lines.collect())
}

/// Wraps a sentence. A statement to copy, which is indented, stays on one line.
pub fn broken(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if !line.starts_with(INDENT) => {
            let lines = crate::text::lines(line, width.saturating_sub(INDENT.len()).max(1));
            // A separator at the end of a line has nothing to separate.
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

/// Sections that could not be read and have no place of their own below, and what was omitted.
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

/// `Sessions: not readable (permission denied …)`: a section that cannot be read must not appear empty.
fn not_readable(what: &str, error: &str) -> String {
    format!("{what}: not readable ({})", one_line(error))
}

fn findings(view: &View) -> Vec<String> {
    let severity = |severity| match severity {
        Severity::Critical => "CRIT",
        Severity::Warning => "WARN",
        Severity::Info => "INFO",
    };
    // A section that could not be read is reported above or in its place; a failed search is not.
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

/// Whether the subject of a finding is a statement to run, which is not truncated.
fn is_statement(finding: &Finding) -> bool {
    finding.about.contains("ROLLBACK PREPARED")
}

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

pub fn more(there_are: usize, shown: usize, what: &str) -> Option<String> {
    let left_out = there_are.checked_sub(shown).filter(|left_out| *left_out > 0)?;
    Some(format!("… and {} more {what} (--format json has all)", count(left_out as u64)))
}
