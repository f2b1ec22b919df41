//! A report on a part of a recording: HTML that loads and runs nothing, Markdown, or JSON.

mod chart;
mod content;
mod episodes;
mod log;
mod page;

use crate::model::Timestamp;
use crate::model::blame::Blame;
use crate::model::zone::Zone;
use crate::output::json::locks::blame;
use crate::output::json::object::{self, Json, object};
use crate::text::{count, one_line_prefix};

pub use log::{LogDeadlock, LogFile, LogReport, LogWait, Visibility, WaitEnd, WaitSums};

/// Maximum bytes of a report; beyond that, the least expensive rows are omitted.
pub const LARGEST: usize = 150_000;

#[derive(Debug, Clone, Default)]
pub struct IncidentReport {
    pub target: String,
    /// Host and database, `db1:5432/shop`; empty if no snapshot has them.
    pub place: String,
    pub server: String,
    pub from: Timestamp,
    pub to: Timestamp,
    pub snapshots: Vec<Timestamp>,
    /// Usual seconds between two snapshots.
    pub refresh: f64,
    pub redaction: String,
    pub program: String,
    pub columns: Vec<TimelineColumn>,
    pub marks: Vec<Mark>,
    pub marks_omitted: usize,
    pub blame: Blame,
    pub worst: Option<Worst>,
    pub actions: Vec<Mark>,
    pub tries: Vec<Tries>,
    pub tasks: Vec<TaskIncident>,
    /// Victims of deadlocks in words, and when the deadlock was counted.
    pub victims: Vec<(Timestamp, String)>,
    pub settings: Vec<AdvisedSetting>,
    /// Periods without snapshots, in order.
    pub holes: Vec<Hole>,
    pub stale: Vec<Mark>,
    pub damaged: u64,
    /// The recording has no costs; they were computed from its snapshots.
    pub is_counted_anew: bool,
    pub log: Option<LogReport>,
}

/// Marks the last known state of something that had not ended: the state in the last snapshot.
pub(crate) const AT_END: &str = " at the end";

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hole {
    pub from: Timestamp,
    pub to: Timestamp,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimelineColumn {
    pub at: Timestamp,
    pub waiting: u32,
    pub roots: u32,
    /// Waiting sessions behind each episode, by its number, in the snapshot with the most waiting sessions.
    pub behind: Vec<(u64, u32)>,
    pub sign: Option<char>,
    pub is_known: bool,
    pub is_damaged: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// By the server's clock.
    pub at: Timestamp,
    pub sign: char,
    /// One harmless line.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Worst {
    pub at: Timestamp,
    pub waiting: u32,
    pub tree: Tree,
    pub findings: Vec<String>,
    /// Why the sessions behind which most others waited were waiting themselves.
    pub why: Vec<Why>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// The rows as in the table of a snapshot, headings first.
    pub lines: Vec<String>,
    pub branches: Vec<Branch>,
}

/// A session in the drawing of a lock tree, or several similar ones; every text is one harmless line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branch {
    /// Number of sessions above it: 0 for a root.
    pub depth: u16,
    /// `2053 report@metabase`, or `30 sessions, web-1 +8`.
    pub who: String,
    /// `active 34s`, or `waits 34s for orders AccessExclusive`.
    pub does: String,
    /// `blocks 46: 1 continues now, 45 in turn`; empty for one that blocks no session.
    pub blocks: String,
    /// Empty if not known.
    pub statement: String,
}

/// A statement that takes a strong lock on a table and was started repeatedly.
#[derive(Debug, Clone, PartialEq)]
pub struct Tries {
    pub who: String,
    /// One harmless line.
    pub statement: String,
    pub runs: usize,
    pub from: Timestamp,
    pub to: Timestamp,
    /// The longest run in seconds, as far as seen.
    pub longest: f64,
    pub waiting: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    pub who: String,
    /// Sentences from [`crate::model::why`].
    pub said: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskIncident {
    /// When the problem began or was first seen.
    pub at: Timestamp,
    /// The task or item and its problem, in one line.
    pub text: String,
    /// When and how it ended; `None` if the problem is an end itself, or the end is not known.
    pub ended: Option<(Timestamp, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvisedSetting {
    /// As in `pg_settings.name`.
    pub name: &'static str,
    /// `None` if a session has its own value, which others cannot see.
    pub value: Option<String>,
    pub advice: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub top: usize,
    pub zone: Zone,
}

pub fn html(report: &IncidentReport, style: Style) -> String {
    fitted(style, |style| page::html(&content::of(report, style)))
}

pub fn markdown(report: &IncidentReport, style: Style) -> String {
    fitted(style, |style| page::markdown(&content::of(report, style)))
}

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

// Blocks of a report, and their text.

const LONG: usize = 300;

#[derive(Debug)]
enum Block {
    Paragraph(String),
    Line,
    /// Episodes by number: bars on the time line, or a table.
    Episodes(Vec<u64>),
    /// Which session waited for which at the worst moment, with at most so many rows.
    Tree(usize),
    List(Vec<String>),
    /// Headings (true for numbers) and rows.
    Table(Vec<(&'static str, bool)>, Vec<Vec<String>>),
}

/// A heading, whether it is of numbers, and the cell of a row.
type ReportColumn<'a, T> = (&'static str, bool, &'a dyn Fn(&T) -> String);

impl Block {
    fn table<'a, T: 'a, const N: usize>(
        rows: impl IntoIterator<Item = &'a T>,
        cells: [ReportColumn<'_, T>; N],
    ) -> Self {
        let row = |row| cells.iter().map(|(.., cell)| cell(row)).collect();
        Self::Table(
            cells.map(|(head, is_number, _)| (head, is_number)).to_vec(),
            rows.into_iter().map(row).collect(),
        )
    }
}

fn fit(text: &str) -> String {
    one_line_prefix(text, LONG).into_owned()
}

/// The time of day, `14:02:31`, in the time zone of the report.
fn time(style: Style, at: Timestamp) -> String {
    at.with_timezone(&style.zone).format("%H:%M:%S").to_string()
}

fn listed<T>(all: &[T], room: usize, line: impl Fn(&T) -> String) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(room).map(line).collect();
    if all.len() > room {
        lines.push(format!("and {} more like these", count((all.len() - room) as u64)));
    }
    lines
}

fn escape(text: &str) -> String {
    without_tags(text).replace('"', "&quot;").replace('\'', "&#39;")
}

fn without_tags(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Escapes text for HTML, without line breaks inside times and dates.
fn text(text: &str) -> String {
    let is_time = |word: &str| {
        let is_of_it = |byte: u8| byte.is_ascii_digit() || b":.,;+-".contains(&byte);
        let core = word.replace('–', "-");
        core.len() >= 5
            && core.bytes().all(is_of_it)
            && core.bytes().filter(|byte| b":-".contains(byte)).count() >= 2
    };
    let words = text.split(' ').map(|word| {
        let escaped = escape(word);
        if is_time(word) { format!("<time>{escaped}</time>") } else { escaped }
    });
    words.collect::<Vec<_>>().join(" ")
}

pub fn json(report: &IncidentReport) -> Result<String, serde_json::Error> {
    object::text(&object!(
        report;
        format = 1,
        target, server, from, to,
        looks = report.snapshots.len(),
        refresh, redaction, program,
        line[] = report.columns.iter().map(|column| object!(
            column;
            at,
            waiting = column.is_known.then_some(column.waiting),
            roots = column.is_known.then_some(column.roots),
            sign,
        )),
        marks[] = report.marks.iter().map(mark),
        blame = blame(&report.blame),
        worst = report.worst.as_ref().map(|worst| object!(
            worst;
            at, waiting,
            chain = worst.tree.lines,
            findings,
            why[] = worst.why.iter().map(|why| object!(why; who, said)),
        )),
        tries[] = report.tries.iter().map(|tries| object!(
            tries;
            who, statement, runs, from, to, longest, waiting,
        )),
        tasks[] = report.tasks.iter().map(|task| object!(
            task;
            at, text,
            ended_at = task.ended.as_ref().map(|(at, _)| at),
            ended = task.ended.as_ref().map(|(_, how)| how),
        )),
        actions[] = report.actions.iter().map(mark),
        settings[] = report.settings.iter().map(|setting| object!(setting; name, value, advice)),
        holes[] = report.holes.iter().map(|hole| object!(hole; from, to)),
        stale[] = report.stale.iter().map(mark),
        damaged,
        counted_anew = report.is_counted_anew,
        log = report.log.as_ref().map(log),
    ))
}

fn mark(mark: &Mark) -> impl Json {
    object!(mark; at, sign, text)
}

fn log(log: &LogReport) -> impl Json {
    object!(
        log;
        files[] = log.files.iter().map(|file| object!(
            file;
            name, format,
            from = file.span.map(|(from, _)| from),
            to = file.span.map(|(_, to)| to),
            entries, damaged,
            other_server = file.is_other,
        )),
        other_server = log.is_other(),
        seen_waits = log.seen.count,
        seen_seconds = log.seen.seconds,
        unseen_waits = log.unseen.count,
        unseen_seconds = log.unseen.seconds,
        waits[] = log.waits.iter().map(|wait| object!(
            wait;
            began = wait.begin,
            seconds, who, mode,
            lock = wait.on,
            behind,
            ended = wait.end.words(),
            seen = wait.seen.words(),
            statement,
        )),
        deadlocks[] = log.deadlocks.iter().map(|deadlock| object!(deadlock; at, victim, statement, waits)),
        deadlocks_omitted,
        ended[] = log.ended.iter().map(|(at, text)| object!(at, text)),
        ended_omitted,
    )
}
