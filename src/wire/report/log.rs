//! What the server's log says of the time of a report: it is from no look, and in none of the sums.

use super::block::{Block, fit, listed, time};
use super::{Report, Style};
use crate::model::Timestamp;
use crate::text::{count, duration};

/// Files of a log, and what they say.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// The files that were given, in that order.
    pub files: Vec<LogFile>,
    /// Waits, the longest first; of too many the shortest are left out.
    pub waits: Vec<LogWait>,
    /// Waits that looks saw too.
    pub seen: Waits,
    /// Waits that no look saw.
    pub unseen: Waits,
    /// Deadlocks, in order of time.
    pub deadlocks: Vec<LogDeadlock>,
    /// Deadlocks that were left out.
    pub deadlocks_omitted: u64,
    /// Who was cancelled, terminated or gave up, in a line each, in order of time.
    pub ended: Vec<(Timestamp, String)>,
    /// Those that were left out.
    pub ended_omitted: u64,
    /// Its messages are in no language in which waits are known here.
    pub is_foreign: bool,
    /// `log_lock_waits` was off at the worst moment.
    pub tells_no_waits: bool,
}

/// A file of the server's log, and how much of it was understood.
#[derive(Debug, Clone, Default)]
pub struct LogFile {
    /// Its name, without the folders that it is in.
    pub name: String,
    /// `jsonlog` or `csvlog`, as `log_destination` calls the format.
    pub format: &'static str,
    /// Its first entry and its last.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Entries within the time of the report.
    pub entries: u64,
    /// What was passed over: damaged, or of a zone that is not known.
    pub damaged: u64,
    /// Why it is the log of another server, of which nothing is told; none where nothing speaks for that.
    pub is_other: Option<String>,
}

/// How many waits, and how long.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waits {
    /// Waits that were told, each once.
    pub count: u64,
    /// How long they took together, in seconds.
    pub seconds: f64,
}

/// A wait that the log tells of (`log_lock_waits`).
#[derive(Debug, Clone, PartialEq)]
pub struct LogWait {
    /// When it began: the time of a message, less what the wait had lasted by then.
    pub begin: Timestamp,
    /// How long it took; at least so long where its end is not told.
    pub seconds: f64,
    /// Process id and who it was: `4410 deploy@ci`.
    pub who: String,
    /// The mode that it asked for: `Share`.
    pub mode: String,
    /// What it waited for: `accounts`.
    pub on: String,
    /// Who held the lock, when that was told; empty where nobody was named.
    pub behind: String,
    /// How the wait ended, by the log.
    pub end: WaitEnd,
    /// Whether there was a look while it lasted.
    pub seen: Seen,
    /// The statement that waited; empty where the log does not have it.
    pub statement: String,
}

/// How a wait ended, as far as the log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// It got the lock in the end.
    Acquired,
    /// It did not get the lock, and why.
    Gave(&'static str),
    /// The log does not tell how it ended.
    NotTold,
}

/// Whether looks saw a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// There was a look while it went on.
    InLooks,
    /// It lasted from after one look to before the next.
    Between,
    /// Nobody looked at that time.
    Hole,
}

/// A deadlock that the log tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogDeadlock {
    /// When the server broke it.
    pub at: Timestamp,
    /// Whose statement was ended: `4410 deploy@ci`.
    pub victim: String,
    /// The statement that was ended.
    pub statement: String,
    /// Who waited for what behind whom, a line each, with the statement where it is known whose it is.
    pub waits: Vec<String>,
}

impl WaitEnd {
    /// How it ended, in words: `got the lock`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Acquired => "got the lock",
            Self::Gave(why) => why,
            Self::NotTold => "not recorded",
        }
    }
}

impl Seen {
    /// Whether looks saw it, in words: `between looks`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::InLooks => "also in snapshots",
            Self::Between => "between snapshots",
            Self::Hole => "no snapshots",
        }
    }
}

impl Log {
    /// Why all of it is of another server; none where some of it is not, as far as is known.
    pub(super) fn is_other(&self) -> Option<&str> {
        let mut others = self.files.iter().map(|file| file.is_other.as_deref());
        let first = others.next()??;
        others.all(|other| other.is_some()).then_some(first)
    }

    /// What the headline says of it; none where looks saw all of it.
    pub(super) fn headline(&self) -> Option<String> {
        let Waits { count: waits, seconds } = self.unseen;
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

/// What the log says, as a part of the report; empty where no log was given.
pub(super) fn part(report: &Report, style: Style) -> Vec<Block> {
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

fn waits(log: &Log, style: Style) -> Vec<Block> {
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
    let of = |waits: Waits| format!("{} of {} together", count(waits.count), duration(waits.seconds));
    let about =
        format!("Waits: {} missing in snapshots, {} also in snapshots.", of(log.unseen), of(log.seen));
    let heads = vec![
        ("began", false),
        ("waited", true),
        ("who", false),
        ("for", false),
        ("behind", false),
        ("ended", false),
        ("seen", false),
        ("statement", false),
    ];
    let row = |wait: &LogWait| {
        let least = if wait.end == WaitEnd::NotTold { "≥" } else { "" };
        vec![
            time(style, wait.begin),
            format!("{least}{}", duration(wait.seconds)),
            fit(&wait.who),
            fit(&format!("{} on {}", wait.mode, wait.on)),
            fit(&wait.behind),
            wait.end.words().to_owned(),
            wait.seen.words().to_owned(),
            fit(&wait.statement),
        ]
    };
    let rows: Vec<_> = ranked(&log.waits).into_iter().take(2 * style.top).map(row).collect();
    let all = log.seen.count + log.unseen.count;
    let left = all.saturating_sub(rows.len() as u64);
    let mut blocks = vec![Block::Paragraph(about), Block::Table(heads, rows)];
    if left > 0 {
        blocks.push(Block::Paragraph(format!("{} others are omitted.", count(left))));
    }
    blocks
}

/// What no look saw comes first: the rest is above already.
fn ranked(waits: &[LogWait]) -> Vec<&LogWait> {
    let (seen, unseen): (Vec<_>, Vec<_>) = waits.iter().partition(|wait| wait.seen == Seen::InLooks);
    unseen.into_iter().chain(seen).collect()
}

fn deadlocks(log: &Log, style: Style) -> Vec<Block> {
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

/// So many lines, and one for the others.
fn shown(lines: &[String], room: usize, omitted: usize) -> Vec<String> {
    let mut shown = listed(lines, room, String::clone);
    if omitted > 0 {
        shown.push(format!("and {} more that were not kept", count(omitted as u64)));
    }
    shown
}
