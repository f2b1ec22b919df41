use std::time::Duration;

use clap::{Args, ValueEnum};

use super::log::LogArgs;
use crate::text::parse_duration;
use crate::wire::check::{CheckFormat, Limits, MEASURES, Measure, Range, Status, names};

#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub log: LogArgs,
    /// Warning threshold of a check; can be given more than once. Short form: -w NAME=RANGE.
    #[arg(long, value_name = "NAME=RANGE", value_parser = limit)]
    pub warning: Vec<(String, Range)>,
    /// Critical threshold of a check. Short form: -c NAME=RANGE.
    #[arg(long, value_name = "NAME=RANGE", value_parser = limit)]
    pub critical: Vec<(String, Range)>,
    /// Only these checks, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name)]
    pub only: Vec<String>,
    /// All checks except these, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name)]
    pub not: Vec<String>,
    /// Time limit; then the result is UNKNOWN.
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = seconds)]
    pub timeout: Duration,
    /// Number of polls; a check alerts only if it alerts in each of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=60))]
    pub looks: u32,
    /// Time between two polls.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = seconds)]
    pub every: Duration,
    /// Output format.
    #[arg(long, value_enum, default_value_t = CheckFormat::Plugin)]
    pub format: CheckFormat,
    /// Status if no connection can be made.
    #[arg(long, value_enum, value_name = "STATUS", default_value_t = DownIs::Unknown)]
    pub down_is: DownIs,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DownIs {
    /// 3.
    Unknown,
    /// 2.
    Critical,
}

pub(super) fn after_help() -> String {
    let range = |range: Option<Range>| range.map_or_else(|| "-".to_owned(), |range| range.to_string());
    let row = |measure: &Measure| {
        let unit = if measure.unit == "c" { "" } else { measure.unit };
        let (warning, critical) = (range(measure.warning), range(measure.critical));
        format!("  {:<16}{unit:<4}{warning:>8}{critical:>9}\n", measure.name)
    };
    let rows = MEASURES.iter().map(row).collect::<Vec<_>>().concat();
    format!(
        "Checks, with their unit and the highest value without a WARNING and without a CRITICAL:\n{rows}  and connect (s), blocked_seconds (s, with --looks)\n\n\
         Ranges: 10 alerts above 10 (and below 0), 10: below 10, ~:10 above 10, 10:20 outside of both, @10:20 between them; times may have a \
         unit (30s, 5m, 1h). Quote ~ in a shell: -c 'worst_root=~:10'.\n\n\
         Examples:\n  locktop check app\n  locktop check -w waiting=5 -c worst_root=10 -c longest_wait=5m app\n  \
         locktop check --only tasks_orphan,tasks_overdue --looks 3 app\n\n\
         Exit status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (also wrong usage and this help).\n\
         A link to locktop named check_locktop takes the options of a monitoring plugin: -H HOST -w NAME=RANGE -c NAME=RANGE -t SECONDS."
    )
}

impl CheckArgs {
    pub fn limits(&self, excluded: Vec<String>) -> Limits {
        Limits {
            warning: self.warning.iter().cloned().collect(),
            critical: self.critical.iter().cloned().collect(),
            only: self.only.clone(),
            not: self.not.clone(),
            excluded,
        }
    }

    pub fn names(&self, name: &str) -> bool {
        let limits = self.warning.iter().chain(&self.critical).map(|(check, _)| check);
        limits.chain(&self.only).any(|check| check == name)
    }

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
    Err(format!("unknown check: {hint}"))
}

fn limit(text: &str) -> Result<(String, Range), String> {
    let (check, range) = text.split_once('=').ok_or("a limit is NAME=RANGE, such as worst_root=10")?;
    Ok((name(check)?, range.parse::<Range>().map_err(|error| error.to_string())?))
}

/// Plugins give a timeout as plain seconds; other times have a unit.
fn seconds(text: &str) -> Result<Duration, String> {
    let time = match text.parse::<u32>() {
        Ok(seconds) => Duration::from_secs(seconds.into()),
        Err(_) => parse_duration(text).ok_or("expected a duration such as 10s")?,
    };
    if time.is_zero() { Err("expected a duration above 0".to_owned()) } else { Ok(time) }
}
