//! The server's log for the period of a report. It is not from snapshots, and not part of any sum.

use super::{Block, IncidentReport, Style, fit, listed, time};
use crate::model::Timestamp;
use crate::text::{count, duration};

#[derive(Debug, Clone, Default)]
pub struct LogReport {
    pub files: Vec<LogFile>,
    pub waits: Vec<LogWait>,
    /// Waits that snapshots show, too.
    pub seen: WaitSums,
    /// Waits that no snapshot shows.
    pub unseen: WaitSums,
    pub deadlocks: Vec<LogDeadlock>,
    pub deadlocks_omitted: u64,
    /// Sessions that were canceled or terminated or that gave up, one line each, in order of time.
    pub ended: Vec<(Timestamp, String)>,
    pub ended_omitted: u64,
    /// Its messages are in a language in which waits are not recognized.
    pub is_foreign: bool,
    /// `log_lock_waits` was off at the worst moment.
    pub tells_no_waits: bool,
}

#[derive(Debug, Clone, Default)]
pub struct LogFile {
    pub name: String,
    /// `jsonlog` or `csvlog`, as in `log_destination`.
    pub format: &'static str,
    pub span: Option<(Timestamp, Timestamp)>,
    pub entries: u64,
    /// Skipped entries: damaged, or in an unknown time zone.
    pub damaged: u64,
    /// Why it is the log of another server, which is ignored; `None` if nothing indicates that.
    pub is_other: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WaitSums {
    pub count: u64,
    pub seconds: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LogWait {
    /// When it began: the time of a message, minus the duration of the wait at that time.
    pub begin: Timestamp,
    /// Duration in seconds; a minimum if its end is not logged.
    pub seconds: f64,
    /// Process id and session: `4410 deploy@ci`.
    pub who: String,
    pub mode: String,
    pub on: String,
    /// The holder of the lock when the wait was logged; empty if the log names none.
    pub behind: String,
    pub end: WaitEnd,
    pub seen: Visibility,
    pub statement: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    Acquired,
    Gave(&'static str),
    /// The log does not show how it ended.
    NotTold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// A snapshot was taken during the wait.
    InLooks,
    /// It began after one snapshot and ended before the next.
    Between,
    /// No snapshots were taken at that time.
    Hole,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDeadlock {
    pub at: Timestamp,
    /// The session whose statement was canceled: `4410 deploy@ci`.
    pub victim: String,
    pub statement: String,
    /// The waits of the cycle, one line each, with the statement if its session is known.
    pub waits: Vec<String>,
}

impl WaitEnd {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Acquired => "got the lock",
            Self::Gave(why) => why,
            Self::NotTold => "not recorded",
        }
    }
}

impl Visibility {
    pub const fn words(self) -> &'static str {
        match self {
            Self::InLooks => "also in snapshots",
            Self::Between => "between snapshots",
            Self::Hole => "no snapshots",
        }
    }
}

impl LogReport {
    /// Why all files are of another server; `None` if at least one of them is not, as far as known.
    pub(super) fn is_other(&self) -> Option<&str> {
        let mut others = self.files.iter().map(|file| file.is_other.as_deref());
        let first = others.next()??;
        others.all(|other| other.is_some()).then_some(first)
    }

    pub(super) fn headline(&self) -> Option<String> {
        let WaitSums { count: waits, seconds } = self.unseen;
        (waits > 0).then(|| {
            let plural = if waits == 1 { "wait" } else { "waits" };
            format!(
                "The server's log has {} {plural} of {} in total that no snapshot shows: they are in a section of their own, and not in the sums.",
                count(waits),
                duration(seconds)
            )
        })
    }
}

pub(super) fn part(report: &IncidentReport, style: Style) -> Vec<Block> {
    let Some(log) = &report.log else { return Vec::new() };
    let mut blocks: Vec<Block> =
        log.files.iter().map(|file| Block::Paragraph(of_file(file, style))).collect();
    if log.is_other().is_some() {
        return blocks;
    }
    if log.files.iter().all(|file| file.entries == 0) {
        blocks.push(Block::Paragraph(
            "It has no entry from the time of this report: check that it is the log of this server and day."
                .to_owned(),
        ));
        return blocks;
    }
    blocks.push(Block::Paragraph(
        "This section is from the log only and not part of the costs above. The server logs a wait when it reaches \
         deadlock_timeout; shorter ones are in neither."
            .to_owned(),
    ));
    blocks.extend(waits(log, style));
    blocks.extend(deadlocks(log, style));
    let ended = log.ended.iter().map(|(at, line)| format!("{} {}", time(style, *at), fit(line)));
    let ended: Vec<String> = ended.collect();
    if !ended.is_empty() {
        blocks.push(Block::Paragraph("Canceled statements and terminated sessions:".to_owned()));
        let omitted = usize::try_from(log.ended_omitted).unwrap_or(usize::MAX);
        blocks.push(Block::List(shown(&ended, 5 * style.top, omitted)));
    }
    blocks
}

/// `postgresql.json (jsonlog, 13:50:02 to 14:10:31): 812 entries within the time of this report.`
fn of_file(file: &LogFile, style: Style) -> String {
    let span = file.span.map(|(from, to)| {
        let day = |at: Timestamp| at.with_timezone(&style.zone).format("%Y-%m-%d %H:%M:%S").to_string();
        format!(", {} to {}", day(from), day(to))
    });
    let span = span.unwrap_or_default();
    let damaged = match file.damaged {
        0 => String::new(),
        damaged => format!("; {} entries could not be read", count(damaged)),
    };
    let (name, entries) = (fit(&file.name), count(file.entries));
    let about = file.is_other.as_deref().map(|why| {
        let why = fit(why);
        format!(" It is the log of another server: {why}. It is ignored.")
    });
    let about = about.unwrap_or_default();
    format!(
        "{name} ({}{span}): {entries} entries within the time of this report{damaged}.{about}",
        file.format
    )
}

fn waits(log: &LogReport, style: Style) -> Vec<Block> {
    if log.waits.is_empty() {
        let why = if log.is_foreign {
            "Its messages are not in English, and waits have no error code: they cannot be found."
        } else if log.tells_no_waits {
            "log_lock_waits was off: the log has no waits."
        } else {
            "It has no wait for a lock."
        };
        return vec![Block::Paragraph(why.to_owned())];
    }
    let of = |waits: WaitSums| format!("{} of {} together", count(waits.count), duration(waits.seconds));
    let about =
        format!("Waits: {} missing in snapshots, {} also in snapshots.", of(log.unseen), of(log.seen));
    let waited = |wait: &LogWait| {
        let least = if wait.end == WaitEnd::NotTold { "≥" } else { "" };
        format!("{least}{}", duration(wait.seconds))
    };
    let shown: Vec<&LogWait> = ranked(&log.waits).into_iter().take(2 * style.top).collect();
    let left = (log.seen.count + log.unseen.count).saturating_sub(shown.len() as u64);
    let table = Block::table(
        shown,
        [
            ("began", false, &|wait| time(style, wait.begin)),
            ("waited", true, &waited),
            ("who", false, &|wait| fit(&wait.who)),
            ("for", false, &|wait| fit(&format!("{} on {}", wait.mode, wait.on))),
            ("behind", false, &|wait| fit(&wait.behind)),
            ("ended", false, &|wait| wait.end.words().to_owned()),
            ("seen", false, &|wait| wait.seen.words().to_owned()),
            ("statement", false, &|wait| fit(&wait.statement)),
        ],
    );
    let mut blocks = vec![Block::Paragraph(about), table];
    if left > 0 {
        blocks.push(Block::Paragraph(format!("{} others are omitted.", count(left))));
    }
    blocks
}

/// Waits that no snapshot shows come first, since the report already has the others above.
fn ranked(waits: &[LogWait]) -> Vec<&LogWait> {
    let (seen, unseen): (Vec<_>, Vec<_>) = waits.iter().partition(|wait| wait.seen == Visibility::InLooks);
    unseen.into_iter().chain(seen).collect()
}

fn deadlocks(log: &LogReport, style: Style) -> Vec<Block> {
    let mut blocks = Vec::new();
    for deadlock in log.deadlocks.iter().take(style.top) {
        let about = format!(
            "{} deadlock: {} was ended: {}",
            time(style, deadlock.at),
            deadlock.victim,
            deadlock.statement
        );
        blocks.push(Block::Paragraph(fit(&about)));
        blocks.push(Block::List(deadlock.waits.iter().map(|line| fit(line)).collect()));
    }
    let left = log.deadlocks.len().saturating_sub(style.top) as u64 + log.deadlocks_omitted;
    if left > 0 {
        blocks.push(Block::Paragraph(format!("{} more deadlocks are omitted.", count(left))));
    }
    blocks
}

fn shown(lines: &[String], room: usize, omitted: usize) -> Vec<String> {
    let mut shown = listed(lines, room, String::clone);
    if omitted > 0 {
        shown.push(format!("and {} more that were not kept", count(omitted as u64)));
    }
    shown
}
