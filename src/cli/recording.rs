use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::log::LogArgs;
use super::options::{HOUR, ViewArgs, refresh, time, zone};
use crate::feed::record::Around;
use crate::model::disclosure::Mode;
use crate::model::zone::Zone;
use crate::text::parse_duration;

#[derive(Debug, Clone, Args)]
pub struct RecordArgs {
    #[command(flatten)]
    pub log: LogArgs,
    /// A file, appended to if it exists; a directory, which gets files that begin with the target's name; - for standard output.
    pub place: PathBuf,
    /// A URI, a key=value string, a name from the config, or a database name.
    pub target: Option<String>,
    /// Time between two polls, 0.1s to 60s [default: that of the config, or 1s]
    #[arg(long, value_name = "TIME", value_parser = refresh())]
    pub refresh: Option<Duration>,
    /// Stop after this time [default: at SIGINT or SIGTERM]
    #[arg(long = "for", value_name = "TIME", value_parser = hours())]
    pub for_time: Option<Duration>,
    /// Longest time until written snapshots are on the disk.
    #[arg(long, value_name = "TIME", value_parser = hours(), default_value = "1s")]
    pub sync: Duration,
    /// In a directory: begin another file after this time or size, such as 1h or 256MB.
    #[arg(long, value_name = "TIME|SIZE", value_parser = amount)]
    pub rotate: Option<Amount>,
    /// In a directory: remove files that were not written to for this time, such as 7d, or the oldest above this size, such as 10GB.
    #[arg(long, value_name = "TIME|SIZE", value_parser = amount)]
    pub keep: Vec<Amount>,
    /// Parts of statements to remove [default: literals in a directory, nothing in a file; literals always from statements about passwords]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub redact: Option<Mode>,
    /// Write only incidents: the snapshots before, during and after a critical finding. In a directory,
    /// one file per incident.
    #[arg(long)]
    pub on_trouble: bool,
    /// With --on-trouble: how much time before the incident to record, up to 1h [default: 2m]
    #[arg(long, value_name = "TIME", requires = "on_trouble", value_parser = time(..=HOUR, " up to 1h, such as 2m"))]
    pub before: Option<Duration>,
    /// With --on-trouble: how long to record after the last critical finding [default: 5m]
    #[arg(long, value_name = "TIME", requires = "on_trouble", value_parser = hours())]
    pub after: Option<Duration>,
}

impl RecordArgs {
    /// How much is recorded around an incident. `None` records everything.
    pub fn around(&self) -> Option<Around> {
        const BEFORE: Duration = Duration::from_secs(2 * 60);
        const AFTER: Duration = Duration::from_secs(5 * 60);
        let around = Around { before: self.before.unwrap_or(BEFORE), after: self.after.unwrap_or(AFTER) };
        self.on_trouble.then_some(around)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// A time, such as `1h`.
    Time(Duration),
    /// A size in bytes, such as `256MB`.
    Size(u64),
}

#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// A recording, a directory of recordings, or - for standard input.
    pub place: PathBuf,
    /// Time to begin at: 14:02, 14:02:31, 2026-11-04 14:02, -10m (before the end), worst, or seconds since 1970 [default: the beginning]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<String>,
    /// Play from the start at this speed, 0.25 to 64 times the original; without it p plays.
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub speed: Option<f64>,
    /// Begin at the end, and show what is appended.
    #[arg(short = 'f', long, conflicts_with_all = ["at", "speed"])]
    pub follow: bool,
    /// Print the snapshots instead of the dashboard, one per line: as the JSON of snapshot --format json, or as CSV.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["follow", "speed"])]
    pub export: Option<Export>,
    /// With --export: the first snapshot.
    #[arg(long, value_name = "TIME", requires = "export", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// With --export: the last snapshot.
    #[arg(long, value_name = "TIME", requires = "export", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Thresholds of the findings: those of the recording or those of the config [default: file]
    #[arg(long, value_enum, value_name = "FROM")]
    pub thresholds: Option<ThresholdSource>,
    /// Time zone of input and output: UTC, an offset such as +02:00, or a name such as Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE", value_parser = zone, allow_hyphen_values = true)]
    pub zone: Option<Zone>,
    #[command(flatten)]
    pub view: ViewArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// One JSON line per snapshot.
    Jsonl,
    /// A table for a spreadsheet: one line per snapshot with the waiting sessions, the worst root blocker and the first finding.
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThresholdSource {
    /// The recording's.
    File,
    /// The config's.
    Config,
}

#[derive(Debug, Clone, Args)]
pub struct CutArgs {
    /// A recording, or a directory of recordings.
    pub place: PathBuf,
    /// The first snapshot, a time as in --at of replay [default: the beginning]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// The last snapshot [default: the end]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// The file to write; it must not exist.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: PathBuf,
    /// Parts of statements to remove, in addition to what the recording lacks already.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub redact: Option<Mode>,
    /// Time zone of input and output: UTC, an offset such as +02:00, or a name such as Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE", value_parser = zone, allow_hyphen_values = true)]
    pub zone: Option<Zone>,
}

#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// A recording, a directory of recordings, or - for standard input.
    pub place: PathBuf,
    /// The first snapshot, a time as in --at of replay [default: the beginning]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// The last snapshot [default: the end]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Only the last TIME of the recording, such as 1h.
    #[arg(long, value_name = "TIME", value_parser = hours(), conflicts_with_all = ["from", "to"])]
    pub last: Option<Duration>,
    /// Only the episode with this number in the report and on the Blame screen, and 30 s before and after it.
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "to", "last"])]
    pub episode: Option<u64>,
    /// Output format [default: by the file name after -o, or md]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// The file to write; it must not exist [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Number of root blockers and episodes to list, 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub top: u8,
    /// Parts of statements to remove, in addition to what the recording lacks already.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub redact: Option<Mode>,
    /// A file of the server's log, jsonlog or csvlog: its entries of that time are added to the report. Can
    /// be given more than once, oldest file first.
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// Time zone of input and output: UTC, an offset such as +02:00, or a name such as Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE", value_parser = zone, allow_hyphen_values = true)]
    pub zone: Option<Zone>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One page without scripts, fonts or links.
    Html,
    /// Markdown.
    Md,
    /// One object.
    Json,
}

impl ReportArgs {
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

fn hours() -> impl Fn(&str) -> Result<Duration, String> + Clone {
    time(.., " such as 8h")
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
