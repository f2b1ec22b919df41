//! The options of `record`, `replay`, `cut` and `report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::log::LogArgs;
use super::options::ViewArgs;
use super::zone;
use crate::config::{MAX_REFRESH, MIN_REFRESH};
use crate::feed::record::Around;
use crate::feed::record::names::Salt;
use crate::feed::record::redact::Redaction;
use crate::model::zone::Zone;
use crate::text::parse_duration;

/// `locktop record`.
#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    /// What locktop itself does.
    #[command(flatten)]
    pub log: LogArgs,
    /// A file, which is gone on with where it is there; a folder, which gets files that begin with the target's name; - for standard output.
    pub place: PathBuf,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
    /// Time between two looks at the server, 0.1s to 60s [default: that of the config, or 1s]
    #[arg(long, value_name = "TIME", value_parser = refresh)]
    pub refresh: Option<Duration>,
    /// End after this time [default: at SIGINT or SIGTERM]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub for_time: Option<Duration>,
    /// What was written is on the disk after this time.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s")]
    pub sync: Duration,
    /// In a folder: begin another file after this time or size, such as 1h or 256MB.
    #[arg(long, value_name = "TIME|SIZE", value_parser = amount)]
    pub rotate: Option<Amount>,
    /// In a folder: remove files that were not written to for this time, such as 7d, or the oldest above this size, such as 10GB.
    #[arg(long, value_name = "TIME|SIZE", value_parser = amount)]
    pub keep: Vec<Amount>,
    /// What is left out of statements [default: literals in a folder, nothing in a file; of statements about passwords always literals]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub redact: Option<Redact>,
    /// Write nothing until a finding is critical; then what was before it, and what comes until it has been over for a while. In a folder a
    /// file for each such trouble.
    #[arg(long)]
    pub on_trouble: bool,
    /// With --on-trouble: how much of what was before, up to 1h [default: 2m]
    #[arg(long, value_name = "TIME", requires = "on_trouble", value_parser = before)]
    pub before: Option<Duration>,
    /// With --on-trouble: how long after nothing is critical any more [default: 5m]
    #[arg(long, value_name = "TIME", requires = "on_trouble", value_parser = time)]
    pub after: Option<Duration>,
}

impl RecordArgs {
    /// How much around trouble is recorded; none for everything.
    pub fn around(&self) -> Option<Around> {
        const BEFORE: Duration = Duration::from_secs(2 * 60);
        const AFTER: Duration = Duration::from_secs(5 * 60);
        let around = Around { before: self.before.unwrap_or(BEFORE), after: self.after.unwrap_or(AFTER) };
        self.on_trouble.then_some(around)
    }
}

/// What is left out of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Redact {
    /// Nothing.
    None,
    /// Strings, numbers and comments.
    Literals,
    /// All but a number, the same for the same statement with other literals.
    Queries,
    /// All but its form, and all names: tables, roles, databases, applications and addresses become hashes, tasks, jobs, leases and queues
    /// are left out.
    Names,
}

impl Redact {
    /// As the recorder has it.
    ///
    /// # Errors
    /// When the system has no random numbers to give.
    pub fn redaction(self) -> std::io::Result<Redaction> {
        Ok(match self {
            Self::None => Redaction::None,
            Self::Literals => Redaction::Literals,
            Self::Queries => Redaction::Queries,
            Self::Names => Redaction::Names(Salt::random()?),
        })
    }
}

/// When a folder gets another file, or loses one: after a time, or by size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// After a time, as `1h`.
    Time(Duration),
    /// From a size on, in bytes: `256MB`.
    Size(u64),
}

/// `locktop replay`.
#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// A recording, a folder of them, or - for standard input.
    pub place: PathBuf,
    /// Where to begin: 14:02, 14:02:31, 2026-11-04 14:02, -10m before its end, worst, or seconds since 1970 [default: its beginning]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<String>,
    /// Play from the start, so many times as fast as it was, 0.25 to 64; without it p plays.
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub speed: Option<f64>,
    /// Begin at the end, and show what comes.
    #[arg(short = 'f', long, conflicts_with_all = ["at", "speed"])]
    pub follow: bool,
    /// Print its looks in place of the dashboard, a line each: as documents that snapshot --format json has, or as a table.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["follow", "speed"])]
    pub export: Option<Export>,
    /// With --export: the first look.
    #[arg(long, value_name = "TIME", requires = "export", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// With --export: the last look.
    #[arg(long, value_name = "TIME", requires = "export", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Judge by the thresholds of the config in place of the recording's.
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub thresholds: Option<Whose>,
    /// The zone in which times are read and shown: UTC, an offset such as +02:00, or a name such as Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE", value_parser = zone::parse, allow_hyphen_values = true)]
    pub zone: Option<Zone>,
    /// How the dashboard looks.
    #[command(flatten)]
    pub view: ViewArgs,
}

/// How looks are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// A line of JSON each.
    Jsonl,
    /// A table for a spreadsheet: a line each with numbers of who waits, the worst root and the first finding.
    Csv,
}

/// Whose thresholds count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Whose {
    /// The recording's.
    File,
    /// The config's.
    Config,
}

/// `locktop cut`.
#[derive(Debug, Clone, Args)]
pub struct CutArgs {
    /// A recording, or a folder of them.
    pub place: PathBuf,
    /// The first look, as --at of replay has it [default: its beginning]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// The last look [default: its end]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// The file to write; there may be none of that name.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: PathBuf,
    /// What is left out of statements, beside what is left out already.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub redact: Option<Redact>,
    /// The zone in which times are read and shown: UTC, an offset such as +02:00, or a name such as Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE", value_parser = zone::parse, allow_hyphen_values = true)]
    pub zone: Option<Zone>,
}

/// `locktop report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// A recording, a folder of them, or - for standard input.
    pub place: PathBuf,
    /// The first look, as --at of replay has it [default: its beginning]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// The last look [default: its end]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// The last TIME of it, such as 1h.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["from", "to"])]
    pub last: Option<Duration>,
    /// An episode by its number, as the report and the Blame screen have it, with half a minute around it.
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "to", "last"])]
    pub episode: Option<u64>,
    /// How it is written [default: as the name after -o ends, or md]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// The file to write; there may be none of that name [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// So many roots and episodes are listed, 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub top: u8,
    /// What is left out of statements, beside what is left out already.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub redact: Option<Redact>,
    /// A file of the server's log, jsonlog or csvlog: what it says of that time is told beside what looks saw; of several
    /// files --log before each, the oldest first.
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// The zone in which times are read and shown: UTC, an offset such as +02:00, or a name such as Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE", value_parser = zone::parse, allow_hyphen_values = true)]
    pub zone: Option<Zone>,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One page without script, font or link.
    Html,
    /// Markdown.
    Md,
    /// One object.
    Json,
}

impl ReportArgs {
    /// The format that was asked for, or that the name of the file has.
    pub fn format(&self) -> ReportFormat {
        let ending =
            self.output.as_deref().and_then(|path| path.extension()).and_then(|ending| ending.to_str());
        self.format.unwrap_or(match ending {
            Some("html" | "htm") => ReportFormat::Html,
            Some("json") => ReportFormat::Json,
            _ => ReportFormat::Md,
        })
    }
}

fn refresh(text: &str) -> Result<Duration, String> {
    let found = parse_duration(text).filter(|found| (MIN_REFRESH..=MAX_REFRESH).contains(found));
    found.ok_or_else(|| "expected a duration from 0.1s to 60s, such as 1s".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a duration such as 8h".to_owned())
}

fn before(text: &str) -> Result<Duration, String> {
    let found = parse_duration(text).filter(|time| *time <= Duration::from_secs(3600));
    found.ok_or_else(|| "expected a duration up to 1h, such as 2m".to_owned())
}

fn speed(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|speed| (0.25..=64.0).contains(speed));
    found.ok_or_else(|| "expected a number from 0.25 to 64".to_owned())
}

fn amount(text: &str) -> Result<Amount, String> {
    const UNITS: [(&str, u64); 3] = [("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30)];
    let size = UNITS.iter().find_map(|(unit, factor)| {
        let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        Some(Amount::Size(number.checked_mul(*factor)?))
    });
    let time = || parse_duration(text).filter(|time| !time.is_zero()).map(Amount::Time);
    size.filter(|size| *size != Amount::Size(0))
        .or_else(time)
        .ok_or_else(|| "expected a duration such as 1h, or a size such as 256MB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_times_or_sizes() {
        assert_eq!(amount("256MB"), Ok(Amount::Size(256 << 20)));
        assert_eq!(amount("10 GB"), Ok(Amount::Size(10 << 30)));
        assert_eq!(amount("1h"), Ok(Amount::Time(Duration::from_secs(3600))));
        for text in ["", "0MB", "0s", "x", "-1MB", "99999999999999GB"] {
            assert!(amount(text).is_err(), "{text}");
        }
    }
}
