//! The options of `locktop check`, and its other name.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::args::Command;
use super::log::LogArgs;
use crate::config::duration;
use crate::wire::check::{CheckFormat, Limits, MEASURES, Measure, Range, Status, names};

/// The name by which it has the conventions of a monitoring plugin.
const PLUGIN: &str = "check_locktop";

/// `locktop check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// What locktop itself does.
    #[command(flatten)]
    pub log: LogArgs,
    /// From when on a check is a WARNING; may be given more than once. As -w NAME=RANGE too.
    #[arg(long, value_name = "NAME=RANGE", value_parser = limit)]
    pub warning: Vec<(String, Range)>,
    /// From when on it is CRITICAL. As -c NAME=RANGE too.
    #[arg(long, value_name = "NAME=RANGE", value_parser = limit)]
    pub critical: Vec<(String, Range)>,
    /// Only these checks, with commas between them.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name)]
    pub only: Vec<String>,
    /// Not these.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name)]
    pub not: Vec<String>,
    /// UNKNOWN after so long, whatever the server does.
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = seconds)]
    pub timeout: Duration,
    /// How often to look: what is bad has to be bad each time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub looks: u32,
    /// How long after each other.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    pub every: Duration,
    /// Whose words.
    #[arg(long, value_enum, default_value_t = Format::Plugin)]
    pub format: Format,
    /// What it is when no connection can be made.
    #[arg(long, value_enum, value_name = "STATUS", default_value_t = DownIs::Unknown)]
    pub down_is: DownIs,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

/// Whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
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

/// What a server is that cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DownIs {
    /// 3.
    Unknown,
    /// 2.
    Critical,
}

/// What stands below the options: the checks with their limits, and what a range is.
pub(super) fn after_help() -> String {
    let range = |range: Option<Range>| range.map_or_else(|| "-".to_owned(), |range| range.to_string());
    let row = |measure: &Measure| {
        let unit = if measure.unit == "c" { "" } else { measure.unit };
        let (warning, critical) = (range(measure.warning), range(measure.critical));
        format!("  {:<16}{unit:<4}{warning:>8}{critical:>9}\n", measure.name)
    };
    let rows = MEASURES.iter().map(row).collect::<Vec<_>>().concat();
    format!(
        "Checks, with their unit and what is still no WARNING and no CRITICAL:\n{rows}  and connect (s), blocked_seconds (s, with --looks)\n\n\
         Ranges: 10 alerts above 10 (and below 0), 10: below 10, ~:10 above 10, 10:20 outside of both, @10:20 between them; times may have a \
         unit (30s, 5m, 1h). A shell may want quotes: -c 'worst_root=~:10'.\n\n\
         Examples:\n  locktop check app\n  locktop check -w waiting=5 -c worst_root=10 -c longest_wait=5m app\n  \
         locktop check --only tasks_orphan,tasks_overdue --looks 3 app\n\n\
         Exit status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN, which wrong usage and this help are, too.\n\
         A link to locktop that is called check_locktop takes a plugin's options: -H HOST -w NAME=RANGE -c NAME=RANGE -t SECONDS."
    )
}

impl CheckArgs {
    /// Ranges and the checks that are wanted.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            warning: self.warning.iter().cloned().collect(),
            critical: self.critical.iter().cloned().collect(),
            only: self.only.clone(),
            not: self.not.clone(),
        }
    }

    /// Whether the command line names this check.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        let limits = self.warning.iter().chain(&self.critical).map(|(check, _)| check);
        limits.chain(&self.only).any(|check| check == name)
    }

    /// Whose words.
    #[must_use]
    pub fn words(&self) -> CheckFormat {
        match self.format {
            Format::Plugin => CheckFormat::Plugin,
            Format::Json | Format::Zabbix => CheckFormat::Json,
            Format::Checkmk => CheckFormat::Checkmk,
            Format::Openmetrics => CheckFormat::OpenMetrics,
        }
    }

    /// What it is when no connection can be made.
    #[must_use]
    pub fn down(&self) -> Status {
        match self.down_is {
            DownIs::Unknown => Status::Unknown,
            DownIs::Critical => Status::Critical,
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    if names().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    let hint = pg_connect::conninfo::nearest(text, names())
        .map_or_else(|| names().collect::<Vec<_>>().join(", "), |name| format!("did you mean {name}?"));
    Err(format!("there is no such check: {hint}"))
}

fn limit(text: &str) -> Result<(String, Range), String> {
    let (check, range) = text.split_once('=').ok_or("a limit is NAME=RANGE, such as worst_root=10")?;
    Ok((name(check)?, range.parse::<Range>().map_err(|error| error.to_string())?))
}

/// A plugin's time-out is a number of seconds; elsewhere times have a unit.
fn seconds(text: &str) -> Result<Duration, String> {
    let time = match text.parse::<u32>() {
        Ok(seconds) => Duration::from_secs(seconds.into()),
        Err(_) => duration::parse(text).ok_or("expected a duration such as 10s")?,
    };
    if time.is_zero() { Err("no time at all is not enough".to_owned()) } else { Ok(time) }
}

/// Options before which a word is no command.
const WITH_VALUE: [&str; 13] = [
    "-h",
    "-p",
    "-U",
    "-d",
    "-t",
    "--host",
    "--port",
    "--username",
    "--dbname",
    "--config",
    "--trust-owner",
    "--redis",
    "--redis-pattern",
];

/// Whether a command line is a check, whose wrong usage is UNKNOWN and not CRITICAL.
pub(super) fn is_check(line: &[OsString]) -> bool {
    is_plugin(line) || command(line).is_some()
}

fn is_plugin(line: &[OsString]) -> bool {
    line.first().and_then(|program| Path::new(program).file_name()).is_some_and(|name| name == PLUGIN)
}

/// Where the command stands, if it is the first one there is.
fn command(line: &[OsString]) -> Option<usize> {
    let words = line.windows(2).enumerate();
    let mut found = words.filter_map(|(at, pair)| match pair {
        [before, word] => {
            let word = word.to_str().filter(|word| Command::has_subcommand(word))?;
            let is_value = before.to_str().is_some_and(|before| WITH_VALUE.contains(&before));
            (!is_value).then_some((at + 1, word))
        }
        _ => None,
    });
    found.next().filter(|(_, word)| *word == "check").map(|(at, _)| at)
}

/// A plugin's options as ours: `-w` and `-c` are limits in a check, where nobody is asked for a password; and by the plugin's name
/// `-H` is the host.
pub(super) fn translate(line: Vec<OsString>) -> Vec<OsString> {
    let by_name = is_plugin(&line);
    let Some(from) = (if by_name { Some(0) } else { command(&line) }) else { return line };
    let mut out: Vec<OsString> = Vec::with_capacity(line.len() + 1);
    for (at, word) in line.iter().enumerate() {
        // Nobody is asked for a password, so that psql's -w has no sense here.
        let is_limit =
            || line.get(at + 1).and_then(|next| next.to_str()).is_some_and(|next| !next.starts_with('-'));
        out.push(match word.to_str() {
            Some("-w") if at > from && is_limit() => "--warning".into(),
            Some("-c") if at > from && is_limit() => "--critical".into(),
            Some("-H" | "--hostname") if by_name => "--host".into(),
            _ => word.clone(),
        });
        if by_name && at == 0 {
            out.push("check".into());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_plugins_options_are_understood() {
        for (given, meant, is) in [
            (
                "locktop check -w waiting=5 -c worst_root=~:10",
                "locktop check --warning waiting=5 --critical worst_root=~:10",
                true,
            ),
            ("locktop -w check prod", "locktop -w check prod", true),
            ("locktop check -w prod", "locktop check --warning prod", true),
            ("locktop check -w --looks 2", "locktop check -w --looks 2", true),
            ("locktop man check", "locktop man check", false),
            ("locktop schema check", "locktop schema check", false),
            ("locktop -d check", "locktop -d check", false),
            ("locktop config check", "locktop config check", false),
            ("locktop -w a=b", "locktop -w a=b", false),
            ("locktop snapshot", "locktop snapshot", false),
            (
                "/usr/lib/nagios/plugins/check_locktop -H db1 -w waiting=5 -t 10",
                "/usr/lib/nagios/plugins/check_locktop check --host db1 --warning waiting=5 -t 10",
                true,
            ),
        ] {
            assert_eq!(is_check(&line(given)), is, "{given}");
            assert_eq!(translate(line(given)), line(meant), "{given}");
        }
    }
}
