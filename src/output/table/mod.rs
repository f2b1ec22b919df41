//! Text for people, with column widths by content. Only what is above the tables of a snapshot is here; the tables are the
//! panes (`app::print`).

use std::fmt::Write as _;
use std::sync::Arc;

use crate::model::adapter::{Adapter, Installation, QueryChoice, Rehearsal, Tried};
use crate::model::disclosure::Channel;
use crate::model::finding::{Finding, Severity, Subject};
use crate::model::plan::{AlsoEnded, Planned, RecoveryOutcome, RecoveryPlan, RecoveryResult, RunState, Step};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::text::{Align, count, duration, fit_pad, list, one_line, width};

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

const WIDEST: usize = 48;

/// Lays `rows` out under `heads`; the last column is not limited. Cells must be one line each.
pub fn laid_out<R: AsRef<[String]>>(heads: &[(&str, Align)], rows: &[R]) -> Vec<String> {
    let mut widths: Vec<usize> = heads.iter().map(|(head, _)| width(head)).collect();
    for row in rows {
        for (columns, cell) in widths.iter_mut().zip(row.as_ref()) {
            *columns = (*columns).max(width(cell)).min(WIDEST);
        }
    }
    let line = |cells: &[&str]| {
        let mut line = String::new();
        for (place, ((cell, columns), (_, align))) in cells.iter().zip(&widths).zip(heads).enumerate() {
            if place > 0 {
                line.push_str("  ");
            }
            if place + 1 == heads.len() {
                line.push_str(cell);
            } else {
                line.push_str(&fit_pad(cell, *columns, *align));
            }
        }
        line
    };
    let mut lines = vec![line(&heads.iter().map(|(head, _)| *head).collect::<Vec<_>>())];
    lines.extend(rows.iter().map(|row| line(&row.as_ref().iter().map(String::as_str).collect::<Vec<_>>())));
    lines
}

const HEADS: [(&str, Align); 7] = [
    ("PART", Align::Left),
    ("QUERY", Align::Right),
    ("COST", Align::Right),
    ("OF", Align::Right),
    ("ROWS", Align::Right),
    ("TOOK", Align::Right),
    ("REASON", Align::Left),
];

pub fn adapters(found: &[Installation], adapters: &[Arc<Adapter>]) -> String {
    let mut lines = Vec::new();
    if found.is_empty() {
        let names: Vec<&str> = adapters.iter().map(|adapter| &*adapter.name).collect();
        return format!("Nothing found in this database of: {}.", names.join(", "));
    }
    for installation in found {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(installation_head(installation));
        if let Some(reason) = &installation.refused {
            lines.push(format!("  not read: {}", one_line(reason)));
            continue;
        }
        let parts = installation.choices.iter().flat_map(rows);
        let rows: Vec<[String; 7]> = parts.chain(installation.actions.iter().map(action)).collect();
        lines.extend(
            laid_out(&HEADS, &rows).into_iter().map(|line| format!("  {line}").trim_end().to_owned()),
        );
    }
    lines.join("\n")
}

fn installation_head(installation: &Installation) -> String {
    let Installation { adapter, version, .. } = installation;
    let version = version.as_ref().map(|version| format!(", {}", one_line(version))).unwrap_or_default();
    let origin = if adapter.is_built_in { "" } else { " (your file)" };
    let place = one_line(&installation.label()).into_owned();
    let tables: Vec<String> =
        installation.tables.values().map(|table| one_line(table).into_owned()).collect();
    let tables = if tables.is_empty() { String::new() } else { format!(": {}", tables.join(", ")) };
    format!("{place}{version}{origin}{tables}")
}

/// One line per alternative: refused ones have the reason, the last one is used.
fn rows(choice: &QueryChoice) -> Vec<[String; 7]> {
    let row = |tried: &Tried| {
        let cost = tried.outcome.as_ref().map(|cost| format!("{cost:.0}")).unwrap_or_default();
        let size = tried.size.map(number).unwrap_or_default();
        let why = tried.refusal().map(|why| one_line(why).into_owned()).unwrap_or_default();
        let once = tried.reading();
        let rows = once.map(|once| once.rows.to_string()).unwrap_or_default();
        let took = once.map(|once| format!("{:.1} ms", once.seconds * 1000.0)).unwrap_or_default();
        [choice.part.as_str().to_owned(), tried.number.to_string(), cost, size, rows, took, why]
    };
    choice.tried.iter().map(row).collect()
}

fn action(tried: &Rehearsal) -> [String; 7] {
    let none = String::new;
    let why = tried.outcome.as_ref().err().map(|why| one_line(why).into_owned());
    let why = why.unwrap_or_else(|| "parsed and planned, not run".to_owned());
    [tried.kind.as_str().to_owned(), tried.number.to_string(), none(), none(), none(), none(), why]
}

/// Rows as estimated by the planner.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is no less than 0, and an estimate"
)]
fn number(rows: f64) -> String {
    format!("~{}", count(rows.max(0.0) as u64))
}

const PLAN_HEADS: [(&str, Align); 8] = [
    ("EXECUTION", Align::Right),
    ("TASK", Align::Left),
    ("WORKER", Align::Left),
    ("STATE", Align::Left),
    ("RUN", Align::Right),
    ("LIMIT", Align::Right),
    ("PID", Align::Right),
    ("ACTION", Align::Left),
];

const NAMES: usize = 5;

/// The plan: one line per row, and one for each execution that ends together with a terminated session. Without rows, what
/// was not included.
pub fn recovery_plan(plan: &RecoveryPlan) -> Vec<String> {
    if plan.rows.is_empty() {
        return vec![nothing(plan)];
    }
    let mut rows = Vec::new();
    let mut shown = Vec::new();
    for row in &plan.rows {
        rows.push(cells(row, plan.grace));
        let Step::Terminate { pid, .. } = row.step else { continue };
        if !shown.contains(&pid) {
            shown.push(pid);
            let news = row.also_ended.iter().filter(|also| plan.row(also.execution_id).is_none());
            rows.extend(news.map(|also| also_cells(also, pid)));
        }
    }
    laid_out(&PLAN_HEADS, &rows)
}

fn also_cells(also: &AlsoEnded, pid: i32) -> [String; 8] {
    let [worker, state, run, limit] = [const { String::new() }; 4];
    let name = one_line(&also.task_name).into_owned();
    let effect = format!("ends with it: {}", also.effect);
    [also.execution_id.to_string(), name, worker, state, run, limit, pid.to_string(), effect]
}

fn cells(row: &Planned, grace: f64) -> [String; 8] {
    let seen = &row.seen;
    let long = |seconds: Option<f64>| seconds.map(duration).unwrap_or_default();
    // The current holder of the key, else the former one.
    let pid = seen.holder_pid.map(|pid| pid.to_string());
    let gone = || seen.backend_pid.filter(|_| seen.state == RunState::Orphan).map(|pid| format!("({pid})"));
    [
        seen.execution_id.to_string(),
        one_line(&seen.task_name).into_owned(),
        one_line(&seen.worker_id).into_owned(),
        seen.state.as_str().to_owned(),
        long(seen.run_seconds),
        long(seen.timeout_seconds),
        pid.or_else(gone).unwrap_or_default(),
        row.effect(grace),
    ]
}

fn nothing(plan: &RecoveryPlan) -> String {
    let mut text = "Nothing to recover.".to_owned();
    let others = &plan.others;
    let grace = duration(plan.grace);
    for (number, what) in [
        (others.slow, "past the timeout, with a held key (--timeout)".to_owned()),
        (
            others.settling,
            format!("with a free key, less than {grace} after the last heartbeat or the server's start"),
        ),
        (others.unknown, "not known whether it is running".to_owned()),
    ] {
        if number > 0 {
            let _ = write!(text, " Not included: {number} {what}.");
        }
    }
    text
}

pub fn recovery_result(plan: &RecoveryPlan, result: &RecoveryResult) -> String {
    let row = plan.row(result.execution_id);
    let name = row.map(|row| one_line(&row.seen.task_name).into_owned()).unwrap_or_default();
    let word = result.outcome.as_str().replace('_', " ");
    let mut text = format!("{name} (execution {}): {word}", result.execution_id);
    match (result.outcome, result.next_run_at) {
        (RecoveryOutcome::Recovered | RecoveryOutcome::GaveUp, Some(at)) => {
            let _ = write!(text, ", runs next at {}", at.format("%Y-%m-%d %H:%M:%S UTC"));
        }
        (RecoveryOutcome::GaveUp, None) => text.push_str(", not run again"),
        _ => {}
    }
    // The plan's texts for executions that it skips begin with this.
    let detail = result.detail.strip_prefix("skipped: ").unwrap_or(&result.detail);
    if !detail.is_empty() {
        text.push_str("; ");
        text.push_str(&one_line(detail));
    }
    if !result.also_ended.is_empty() {
        let _ = write!(text, "; its session also ran {}", recovery_names(&result.also_ended));
    }
    text
}

pub fn recovery_names(all: &[AlsoEnded]) -> String {
    let mut names: Vec<String> =
        all.iter().take(NAMES).map(|also| one_line(&also.task_name).into_owned()).collect();
    match all.len().saturating_sub(NAMES) {
        0 => {}
        1 => names.push("1 other".to_owned()),
        more => names.push(format!("{more} others")),
    }
    list(&names)
}

pub fn recovery_summary(results: &[RecoveryResult]) -> String {
    let count = |is: fn(RecoveryOutcome) -> bool| results.iter().filter(|result| is(result.outcome)).count();
    let (done, settled) = (count(RecoveryOutcome::is_recovered), count(RecoveryOutcome::is_settled));
    let mut text = format!("{done} of {} recovered", results.len());
    if settled > done {
        let _ = write!(text, "; {} had ended", settled - done);
    }
    if results.len() > settled {
        let _ = write!(text, "; {} could not be", results.len() - settled);
    }
    text.push('.');
    text
}
