//! What happened in a part of a recording, for people who were not there: HTML without anything to load or to run, Markdown, JSON.

mod axis;
mod block;
mod chart;
mod content;
mod episodes;
mod escape;
mod html;
mod json;
mod log;
mod markdown;
mod picture;
mod series;
mod tree;

use crate::model::Timestamp;
use crate::model::blame::Blame;
use crate::model::zone::Zone;

pub use json::to_string as json;
pub use log::{Log, LogDeadlock, LogFile, LogWait, Seen, WaitEnd, Waits};

/// Bytes of a report at most; of what is more the cheapest is left out.
pub const LARGEST: usize = 150_000;

/// What happened, of which every text is the server's.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The server, as the recording names it.
    pub target: String,
    /// Host and database, `db1:5432/shop`; empty if no snapshot has them.
    pub place: String,
    /// What it says of itself: version and role.
    pub server: String,
    /// The first look and the last.
    pub from: Timestamp,
    /// The last look of that part.
    pub to: Timestamp,
    /// When each look between them was.
    pub looks: Vec<Timestamp>,
    /// Seconds from one look to the next, usually.
    pub refresh: f64,
    /// What was left out of statements.
    pub redaction: String,
    /// The program that recorded, with its version.
    pub program: String,
    /// How many waited, in the parts of the time line.
    pub columns: Vec<Column>,
    /// What happened when, in order; for people.
    pub marks: Vec<Mark>,
    /// How many marks were left out as too many.
    pub marks_omitted: usize,
    /// Who made others wait, and for how long.
    pub blame: Blame,
    /// The moment at which most waited; none if no session did.
    pub worst: Option<Worst>,
    /// What was done, and what came of it.
    pub actions: Vec<Mark>,
    /// Statements that were tried again and again.
    pub tries: Vec<Tries>,
    /// Tasks and items of queues that something was wrong with.
    pub tasks: Vec<TaskTrouble>,
    /// Whom the server chose to break deadlocks, in words, and when that was counted.
    pub victims: Vec<(Timestamp, String)>,
    /// Settings of the server that mattered.
    pub settings: Vec<Setting>,
    /// Times in which nobody looked, in order.
    pub holes: Vec<Hole>,
    /// What could not be read for a while.
    pub stale: Vec<Mark>,
    /// How many looks are damaged and could not be read.
    pub damaged: u64,
    /// The recording has no costs, and they were counted from its looks.
    pub is_counted_anew: bool,
    /// What the server's log says of that time; none where there is no log.
    pub log: Option<Log>,
}

/// How it ended that had not ended: as the last look has it.
pub(crate) const AT_END: &str = " at the end";

/// A time in which nobody looked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hole {
    /// The last look before the hole.
    pub from: Timestamp,
    /// The first look after the hole.
    pub to: Timestamp,
}

/// A part of the time line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// When the part of the time line begins.
    pub at: Timestamp,
    /// The most that waited at one look in it.
    pub waiting: u32,
    /// The most roots at one look in it.
    pub roots: u32,
    /// How many waited behind each episode, by its number, at the snapshot with the most waiting.
    pub behind: Vec<(u64, u32)>,
    /// The worst that happened in it.
    pub sign: Option<char>,
    /// How many waited in it is known.
    pub is_known: bool,
    /// It has a look that cannot be read.
    pub is_damaged: bool,
}

/// Something that happened, as a line of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// When it happened, by the server's clock.
    pub at: Timestamp,
    /// Its sign on the time line.
    pub sign: char,
    /// What happened, in a harmless line.
    pub text: String,
}

/// The moment at which most waited.
#[derive(Debug, Clone, PartialEq)]
pub struct Worst {
    /// The time of that look, by the server's clock.
    pub at: Timestamp,
    /// How many waited at that look.
    pub waiting: u32,
    /// Which session waited for which.
    pub tree: Tree,
    /// What was wrong, a line for each finding.
    pub findings: Vec<String>,
    /// Why those waited behind whom the most others stood.
    pub why: Vec<Why>,
}

/// Which session waits for which, as a table and as a drawing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// As the table of a snapshot has it, headings first.
    pub lines: Vec<String>,
    /// The same rows, for a drawing.
    pub branches: Vec<Branch>,
}

/// A session in the drawing of a lock tree, or several that are alike; every text is one harmless line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branch {
    /// How many sessions are above it: 0 for a root.
    pub depth: u16,
    /// `2053 report@metabase`, or `30 sessions, web-1 +8`.
    pub who: String,
    /// `active 34s`, or `waits 34s for orders AccessExclusive`.
    pub does: String,
    /// `blocks 46: 1 continues now, 45 in turn`; empty for one that blocks no session.
    pub blocks: String,
    /// Its statement; empty if it is not known.
    pub statement: String,
}

/// A statement that takes a strong lock on a table, and that was begun again and again.
#[derive(Debug, Clone, PartialEq)]
pub struct Tries {
    /// User and application.
    pub who: String,
    /// The statement, as one harmless line.
    pub statement: String,
    /// How many runs of it were seen.
    pub runs: usize,
    /// When the first of them began.
    pub from: Timestamp,
    /// When the last of them began.
    pub to: Timestamp,
    /// The longest of them in seconds, as far as was seen.
    pub longest: f64,
    /// How many snapshots showed one of them waiting for a lock.
    pub waiting: usize,
}

/// Why somebody waited, in sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// Who waited: process id, user and application.
    pub who: String,
    /// The sentences, of [`crate::model::why`].
    pub said: Vec<String>,
}

/// A task, or an item of a queue, that something was wrong with.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskTrouble {
    /// When that began, or was seen first.
    pub at: Timestamp,
    /// What it was and what was wrong, in a line.
    pub text: String,
    /// When and how it ended; none where it is an end itself, or that is not known.
    pub ended: Option<(Timestamp, String)>,
}

/// A setting of the server that mattered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as `pg_settings.name` has it.
    pub name: &'static str,
    /// What it was; none where a session has its own, which others cannot see.
    pub value: Option<String>,
    /// What would have helped, as a sentence.
    pub advice: String,
}

/// Format of a report.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Roots and episodes that are listed.
    pub top: usize,
    /// The zone in which its times are written.
    pub zone: Zone,
}

/// A page that needs nothing beside itself.
pub fn html(report: &Report, style: Style) -> String {
    fitted(style, |style| html::page(&content::of(report, style)))
}

/// The report in Markdown, as GitHub reads it.
pub fn markdown(report: &Report, style: Style) -> String {
    fitted(style, |style| markdown::page(&content::of(report, style)))
}

/// With fewer rows where it would be too large.
fn fitted(style: Style, write: impl Fn(Style) -> String) -> String {
    let mut top = style.top;
    loop {
        let page = write(Style { top, ..style });
        if page.len() <= LARGEST || top <= 1 {
            return page;
        }
        top /= 2;
    }
}
