use super::range::{Range, number};
use super::{CheckReport, JudgedMeasure, Status};
use crate::output::json::object::{self, object};
use crate::text;

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CheckFormat {
    /// Nagios, Icinga, Naemon, Sensu.
    Plugin,
    /// One object.
    Json,
    /// Checkmk's local checks.
    Checkmk,
    /// One object, as a master item.
    Zabbix,
    /// Prometheus, as for the textfile collector.
    Openmetrics,
}

/// Maximum columns of a plugin's first line: what a notification shows, and enough to name the session.
const FIRST: usize = 140;
const MOST: usize = 8 * 1024;
const ABOUT: usize = 300;

pub fn render(report: &CheckReport, format: CheckFormat) -> String {
    match format {
        CheckFormat::Plugin => plugin(report),
        CheckFormat::Json | CheckFormat::Zabbix => json(report),
        CheckFormat::Checkmk => report.checks.iter().map(checkmk).collect(),
        CheckFormat::Openmetrics => metrics(report),
    }
}

/// Converts to one ASCII line without the separator of performance data.
fn plain(about: &str, columns: usize) -> String {
    let line = text::one_line_prefix(about, columns);
    let line = text::fit(&line, columns);
    let mut plain = String::new();
    for character in line.chars() {
        let ascii = text::ascii(character.encode_utf8(&mut [0; 4])).into_owned();
        let piece = match ascii.as_str() {
            "|" => "/".to_owned(),
            // A name in another script is kept as escapes: `\u62a5`.
            _ if !character.is_ascii() && ascii.starts_with('?') => {
                format!("\\u{:04x}", u32::from(character))
            }
            _ => ascii,
        };
        if plain.len() + piece.len() > columns {
            break;
        }
        plain.push_str(&piece);
    }
    plain
}

fn value(judged: &JudgedMeasure) -> String {
    let unit = if judged.unit == "c" { "" } else { judged.unit };
    judged.value.map_or_else(String::new, |value| format!(" {}{unit}", number(value)))
}

/// `worst_root 17 > 10: 4312 idle in transaction 192s blocks 17`
fn sentence(judged: &JudgedMeasure, columns: usize) -> String {
    let range = match judged.status {
        Status::Critical => judged.critical,
        Status::Warning => judged.warning,
        _ => None,
    };
    let why = judged.value.zip(range).map(|(value, range)| format!(" {}", range.why(value, judged.unit)));
    let about = if judged.about.is_empty() { String::new() } else { format!(": {}", judged.about) };
    plain(&format!("{}{}{}{about}", judged.name, value(judged), why.unwrap_or_default()), columns)
}

fn plugin(report: &CheckReport) -> String {
    let bad = report.checks.iter().filter(|judged| judged.status != Status::Ok);
    let mut out = plain(&format!("LOCKTOP {} - {}", report.status().word(), headline(report)), FIRST);
    // No value is ever below 0.
    let data = |judged: &JudgedMeasure| Some(performance(judged, judged.unit)? + ";0");
    let perfdata: Vec<_> = report.checks.iter().filter_map(data).collect();
    let perfdata = perfdata.join(" ");
    for judged in bad {
        let line = format!("\n[{}] {}", judged.status.word(), sentence(judged, ABOUT));
        if out.len() + line.len() + perfdata.len() + 40 < MOST {
            out.push_str(&line);
        }
    }
    let fine = report.checks.iter().filter(|judged| judged.status == Status::Ok).count();
    if fine > 0 && fine < report.checks.len() {
        out = format!("{out}\n[OK] {fine} more");
    }
    let bar = if perfdata.is_empty() { "" } else { " |" };
    format!("{out}{bar}{perfdata}\n")
}

/// The text of a notification: the root blocker if locks are the problem, else the worst check.
fn headline(report: &CheckReport) -> String {
    let Some(worst) = report.checks.first().filter(|judged| judged.status != Status::Ok) else {
        let plural = if report.checks.len() == 1 { "" } else { "s" };
        return format!("{} check{plural}", report.checks.len());
    };
    let is_known = worst.value.is_some();
    let root = report.checks.iter().find(|judged| judged.name == "worst_root" && !judged.about.is_empty());
    match root.filter(|_| is_known && OF_LOCKS.contains(&worst.name)) {
        Some(root) => root.about.clone(),
        None if !worst.about.is_empty() && (!is_known || is_informative(worst.name)) => worst.about.clone(),
        None => sentence(worst, FIRST),
    }
}

const OF_LOCKS: [&str; 6] =
    ["waiting", "longest_wait", "worst_root", "root_age", "idle_root", "blocked_seconds"];

/// Whether the text of a check is a sentence about the problem; that of the others only names the object.
fn is_informative(check: &str) -> bool {
    let others = ["cycles", "types_unserved", "jobs_lost", "jobs_unserved"];
    OF_LOCKS.contains(&check) || others.contains(&check)
}

/// `worst_root=17;3;10`, with the unit of a time if the format has units.
fn performance(judged: &JudgedMeasure, unit: &str) -> Option<String> {
    let range = |range: Option<Range>| range.map_or_else(String::new, |range| range.to_string());
    let (warning, critical) = (range(judged.warning), range(judged.critical));
    Some(format!("{}={}{unit};{warning};{critical}", judged.name, number(judged.value?)))
}

fn json(report: &CheckReport) -> String {
    let status = report.status();
    let document = object!(
        format = 1,
        status = status.word(),
        code = status.code(),
        summary = plain(&headline(report), FIRST),
        checks[] = report.checks.iter().map(|judged| object!(
            judged;
            name,
            status = judged.status.word(),
            value,
            unit = Some(judged.unit).filter(|unit| !unit.is_empty()),
            warning = judged.warning.map(|range| range.to_string()),
            critical = judged.critical.map(|range| range.to_string()),
            about = text::one_line(&judged.about),
        )),
    );
    // Numbers and text can always be written as JSON.
    object::text(&document).unwrap_or_default() + "\n"
}

/// `2 "locktop_worst_root" worst_root=17;3;10;0 worst_root 17 > 10: …`. Checkmk's ranges `lower:upper` are the same.
fn checkmk(judged: &JudgedMeasure) -> String {
    let metrics = performance(judged, "").unwrap_or_else(|| "-".to_owned());
    format!("{} \"locktop_{}\" {metrics} {}\n", judged.status.code(), judged.name, sentence(judged, ABOUT))
}

fn metrics(report: &CheckReport) -> String {
    let of = labels(report);
    let checks = report.checks.iter().filter_map(|judged| metric(judged, &of));
    let all = [Status::Ok, Status::Warning, Status::Critical, Status::Unknown].map(|status| {
        let is = u8::from(report.status() == status);
        format!("locktop_status{{{of},locktop_status=\"{}\"}} {is}\n", status.word().to_lowercase())
    });
    checks
        .chain(["# TYPE locktop_status stateset\n".to_owned()])
        .chain(all)
        .chain(["# EOF\n".to_owned()])
        .collect()
}

/// `server="db:5432",database="app"`: several targets can feed one Prometheus.
fn labels(report: &CheckReport) -> String {
    let value = |text: &str| text::one_line(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("server=\"{}\",database=\"{}\"", value(&report.server), value(&report.database))
}

/// The unit is part of the name, by Prometheus convention.
fn metric(judged: &JudgedMeasure, of: &str) -> Option<String> {
    let value = judged.value?;
    let (suffix, factor) = match judged.unit {
        // `blocked_seconds` has the suffix already.
        "s" if !judged.name.ends_with("_seconds") => ("_seconds", 1.0),
        "%" => ("_ratio", 0.01),
        _ => ("", 1.0),
    };
    let name = format!("locktop_{}{suffix}", judged.name);
    let (kind, total) = if judged.unit == "c" { ("counter", "_total") } else { ("gauge", "") };
    Some(format!("# TYPE {name} {kind}\n{name}{total}{{{of}}} {}\n", number(value * factor)))
}
