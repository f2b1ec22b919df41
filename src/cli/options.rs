use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::FixedOffset;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::app::screens::Screen;
use crate::config::{MAX_REFRESH, MIN_REFRESH};
use crate::model::zone::Zone;
use crate::text::parse_duration;
use crate::ui::theme::BaseTheme;

/// Appearance and start of the dashboard.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Dashboard")]
pub struct ViewArgs {
    /// Time between two polls, 0.1s to 60s [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = refresh())]
    pub refresh: Option<Duration>,
    /// The screen to start on.
    #[arg(long, value_name = "SCREEN")]
    pub screen: Option<Screen>,
    /// Colors [default: dark]
    #[arg(long, value_name = "THEME")]
    pub theme: Option<BaseTheme>,
    /// Draw with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,
    /// Use the mouse from the start; m turns it on and off.
    #[arg(long)]
    pub mouse: bool,
    /// Disable everything that acts on the server.
    #[arg(long)]
    pub read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotFormat {
    /// Text.
    Table,
    /// One JSON object.
    Json,
}

impl ValueEnum for Screen {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let screen = self.definition();
        Some(PossibleValue::new(screen.name).help(screen.about))
    }
}

/// Parses one of these words, each with its help.
pub(super) fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [(&'static str, &'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let words = values.map(|(word, help, _)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(words).try_map(move |word| {
        values.iter().find(|(known, ..)| *known == word).map(|(.., value)| *value).ok_or("unknown word")
    })
}

pub(super) const TENTH: Duration = Duration::from_millis(100);
pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// Parses a duration of this range; the words follow "expected a duration".
pub(super) fn time(
    range: impl RangeBounds<Duration> + Clone,
    words: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let found = parse_duration(text).filter(|found| range.contains(found));
        found.ok_or_else(|| format!("expected a duration{words}"))
    }
}

pub(super) fn refresh() -> impl Fn(&str) -> Result<Duration, String> + Clone {
    time(MIN_REFRESH..=MAX_REFRESH, " from 0.1s to 60s, such as 1s")
}

// `--zone`: UTC, an offset, or an IANA name such as `Europe/Berlin` from the zone files of the system.

/// Directories of IANA zone files; `TZDIR` has precedence.
const FOLDERS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"];

/// Largest zone file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Limits of the search for a similar name: names, and directory levels.
const NAMES: usize = 5_000;
const DEEP: usize = 3;

const EXPECTED: &str = "expected UTC, an offset such as +02:00, or a name such as Europe/Berlin";

/// Parses `UTC`, an offset, or the name of a zone file. The error suggests a valid name.
pub(super) fn zone(text: &str) -> Result<Zone, String> {
    let given = std::env::var_os("TZDIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folders = FOLDERS.iter().map(PathBuf::from);
    let folder = given.into_iter().chain(folders).find(|folder| folder.is_dir());
    zone_in(text, folder.as_deref())
}

fn zone_in(text: &str, folder: Option<&Path>) -> Result<Zone, String> {
    if let Some(offset) = offset(text) {
        return Ok(offset.into());
    }
    if !is_name(text) {
        return Err(EXPECTED.to_owned());
    }
    let Some(folder) = folder else {
        return Err("this machine has no time zone names (/usr/share/zoneinfo, package tzdata): use UTC, or an offset such as +02:00".to_owned());
    };
    let path = folder.join(text);
    let is_small = path.metadata().is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
    let read = is_small.then(|| std::fs::read(&path).ok()).flatten();
    read.and_then(|bytes| Zone::of_file(&bytes)).ok_or_else(|| {
        let mut names = Vec::new();
        list(folder, "", DEEP, &mut names);
        let meant = names.iter().find(|name| name.eq_ignore_ascii_case(text)).or_else(|| {
            let nearest = pg_connect::conninfo::nearest(text, names.iter().map(String::as_str))?;
            names.iter().find(|name| *name == nearest)
        });
        match meant {
            Some(meant) => format!("unknown time zone {text}: did you mean {meant}?"),
            None => format!("unknown time zone {text}: {EXPECTED}"),
        }
    })
}

/// Rejects names that lead out of the directory.
fn is_name(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(is_sign)
}

/// Lists zone names. Files that are not zones start with a lowercase letter or contain a dot.
fn list(folder: &Path, before: &str, deep: usize, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| is_name(name) && names.len() < NAMES) else { continue };
        if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            continue;
        }
        let whole = format!("{before}{name}");
        if entry.path().is_dir() {
            if deep > 1 {
                list(&entry.path(), &format!("{whole}/"), deep - 1, names);
            }
        } else {
            names.push(whole);
        }
    }
}

/// The offset of `UTC`, `+02:00`, `-0330` or `+2`; `None` otherwise.
fn offset(text: &str) -> Option<FixedOffset> {
    let seconds = match text.split_at_checked(1) {
        _ if ["utc", "z"].contains(&text.to_ascii_lowercase().as_str()) => Some(0),
        Some(("+", east)) => seconds(east),
        Some(("-", west)) => seconds(west).map(|seconds| -seconds),
        _ => None,
    };
    seconds.and_then(FixedOffset::east_opt)
}

/// Seconds of `02:00`, `0200` or `2`.
fn seconds(text: &str) -> Option<i32> {
    let (hours, minutes) = match text.split_once(':') {
        Some(parts) => parts,
        None if text.len() == 4 => text.split_at_checked(2)?,
        None => (text, "00"),
    };
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        let is_number = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|_| is_number)
    };
    let (hours, minutes) = (number(hours, 1..=2)?, number(minutes, 2..=2)?);
    (hours <= 18 && minutes < 60).then_some(hours * 3600 + minutes * 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn a_zone_may_be_utc_or_an_offset() {
        for (text, seconds) in [
            ("UTC", 0),
            ("z", 0),
            ("+02:00", 7200),
            ("-0330", -12_600),
            ("+2", 7200),
            ("+05:45", 20_700),
            ("-00:00", 0),
        ] {
            assert_eq!(offset(text).map(|zone| zone.local_minus_utc()), Some(seconds), "{text}");
        }
        for text in [
            "",
            "+",
            "02:00",
            "+2:0",
            "+19:00",
            "+02:60",
            "+1é",
            "+-1",
            "+123",
            "../UTC",
            "/etc/passwd",
            "Europe/../../x",
        ] {
            assert!(
                zone_in(text, None).is_err_and(|error| error.starts_with("expected UTC, an offset")),
                "{text}"
            );
        }
    }

    /// A zone file as `zic` writes it, with only the footer rule.
    fn file(rule: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for version in 0..2 {
            bytes.extend(b"TZif2");
            bytes.extend([0; 15]);
            // isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt
            for count in [0_u32, 0, 0, 0, 1, 4] {
                bytes.extend(count.to_be_bytes());
            }
            bytes.extend(3600_u32.to_be_bytes());
            bytes.extend([0, 0]);
            bytes.extend(b"CET\0");
            if version == 1 {
                bytes.extend(format!("\n{rule}\n").as_bytes());
            }
        }
        bytes
    }

    #[test]
    fn a_zone_may_have_a_name_that_the_system_knows() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("Europe")).unwrap();
        let rule = "CET-1CEST,M3.5.0,M10.5.0/3";
        std::fs::write(folder.path().join("Europe/Berlin"), file(rule)).unwrap();
        std::fs::write(folder.path().join("Europe/Paris"), "no zone").unwrap();
        std::fs::write(folder.path().join("zone.tab"), "x").unwrap();
        let found = zone_in("Europe/Berlin", Some(folder.path())).unwrap();
        let at = |text: &str| {
            let at: Timestamp = text.parse().unwrap();
            at.with_timezone(&found).format("%H:%M %:z").to_string()
        };
        assert_eq!(at("2026-06-01T12:00:00Z"), "14:00 +02:00");
        assert_eq!(at("2026-12-01T12:00:00Z"), "13:00 +01:00");
        let error = |text: &str| zone_in(text, Some(folder.path())).unwrap_err();
        for text in ["europe/berlin", "Europe/Berln"] {
            assert_eq!(error(text), format!("unknown time zone {text}: did you mean Europe/Berlin?"));
        }
        assert!(error("Mars/Olympus").contains("unknown time zone Mars/Olympus: expected UTC, an offset"));
        assert!(error("Europe/Paris").starts_with("unknown time zone Europe/Paris: "));
        assert!(zone_in("Europe/Berlin", None).unwrap_err().contains("package tzdata"));
    }
}
