//! Small checks over a snapshot: what is wrong, how bad, and which shortcut helps.
//!
//! Each check is a function that reads a [`CheckInput`] and returns its findings. A check reads the locks
//! at most once, and returns at most a hundred findings.

mod adapters;
mod blockers;
mod check_input;
pub(crate) mod deadlocks;
mod leases;
pub mod locks;
pub mod server;
mod tasks;
#[cfg(test)]
mod tests;
mod transactions;
pub mod waits;
mod workers;

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::backend::BackendId;
use crate::model::disclosure::{Channel, shown};
use crate::model::id_generator::GeneratorId;
use crate::model::lease::LeaseId;
use crate::model::lock::LockTag;
use crate::model::rate_limit::LimitId;
use crate::model::source_tables::NameHash;
use crate::model::task::TaskId;
use crate::model::thresholds::ExpectedBlocker;
use crate::model::wait_graph::Party;
use crate::model::work_queue::ItemId;
use crate::model::{QueryText, Text, Timestamp};

use crate::order::SortExt;
use crate::text::{fit, width};

pub use blockers::NewRoots;
pub use check_input::CheckInput;
pub(crate) use check_input::{parties_text, party_text};
pub use deadlocks::Deadlocks;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Informational: no action is necessary.
    Info,
    /// Action will be necessary if it continues.
    Warning,
    /// Immediate action is necessary: notifications are sent for this.
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    Backend(BackendId),
    Party(Party),
    Lock(LockTag),
    Task(TaskId),
    Lease(LeaseId),
    Item(ItemId),
    /// A job of another system.
    Job(NameHash),
    /// A queue of another system.
    JobQueue(NameHash),
    /// A lease of another system.
    JobLease(NameHash),
    /// A schedule of another system.
    JobSchedule(NameHash),
    Queue,
    Limit(LimitId),
    Generator(GeneratorId),
    Server,
    /// A section of the snapshot, by its name in the JSON.
    Section(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The stable name of the check, for programs: `root_blocker`, `cycle`, …
    pub check: &'static str,
    pub severity: Severity,
    /// One printable line.
    pub summary: Text,
    /// A shorter summary, for 80 columns.
    pub short: Text,
    /// The session and the locked object, or the remedy, if not in the summary; one printable line, may be empty.
    pub about: Text,
    /// The session's current or last statement: shown with `about`, as far as a channel shows statements.
    pub statement: Option<QueryText>,
    pub subject: Subject,
    /// Waiting groups behind it; 0 if none.
    pub blocked: u32,
    /// The start, if known: of the longest wait, of the idle time, …
    pub since: Option<Timestamp>,
    /// Its text in a row of the first pane. None: as the summary.
    pub row: Option<RowWords>,
    /// The start of the state that the row describes. None: `since`.
    pub began: Option<Timestamp>,
    /// The end of a finding that the screens show for a moment longer. None: it is current.
    pub ended: Option<Timestamp>,
    /// Name of the action that helps, as in the config's `[keys]`: `terminate`, `cancel`, `recover`.
    pub help: Option<&'static str>,
    pub expected: Option<Box<ExpectedBlocker>>,
    /// Further printable lines with details that are shown nowhere else.
    pub details: Vec<Text>,
}

/// Maximum number of findings of a check; the rest are only counted.
const LIMIT: usize = 100;

/// More rows in the same state than this have one cause, such as the loss of all workers, and are one finding.
const SINGLE: usize = 3;

const QUERY: usize = 200;

type Check = fn(&CheckInput<'_>) -> Vec<Finding>;

/// All checks, and whether each needs the locks. Among findings of equal rank, those of an earlier check come first.
const CHECKS: &[(Check, bool)] = &[
    (deadlocks::cycles, true),
    (blockers::root_blockers, true),
    (transactions::blocking_prepared, true),
    (blockers::convoys, true),
    (waits::long_waits, true),
    (waits::wait_events, false),
    (server::connections, false),
    (locks::lock_table, true),
    (waits::pile_ups, false),
    (deadlocks::broken_deadlocks, false),
    (tasks::tasks, false),
    (workers::silent_workers, false),
    (workers::unserved_types, false),
    (leases::leases, false),
    (leases::redis_locks, false),
    (tasks::queue_items, false),
    (adapters::adapters, false),
    (adapters::stuck_adapters, false),
    (adapters::adapter_limits, false),
    (leases::generators_ahead, false),
    (leases::full_limits, false),
    (server::stale_sections, false),
    (blockers::normal_waits, true),
    (locks::idle_locks, true),
    (transactions::forgotten, true),
    (transactions::long_running, true),
    (server::hidden_activity, false),
    (server::growth, false),
    (server::hidden_tables, false),
];

pub fn checks(has_locks: bool) -> usize {
    CHECKS.iter().filter(|(_, about_locks)| has_locks || !about_locks).count()
}

/// All findings, worst first: by severity, then by the number of waiters behind it, then the longest. Checks of locks are
/// skipped if the locks are not from this poll: a separate finding reports that.
pub fn find(input: &CheckInput<'_>) -> Vec<Finding> {
    let has_locks = input.snapshot.locks.is_known();
    let checks = CHECKS.iter().filter(|(_, about_locks)| has_locks || !about_locks);
    let mut findings: Vec<Finding> = checks.flat_map(|(check, _)| check(input)).collect();
    blockers::one_for_each(&mut findings, input);
    findings.order_by(|a, b| {
        let worst = b.severity.cmp(&a.severity).then(b.blocked.cmp(&a.blocked));
        // An earlier start is longer; an unknown one is shorter than any.
        worst.then(a.since.is_none().cmp(&b.since.is_none())).then(a.since.cmp(&b.since))
    });
    cover(&mut findings);
    findings
}

/// Removes informational findings about a session with a more severe finding.
fn cover(findings: &mut Vec<Finding>) {
    let bad = findings.iter().filter(|finding| finding.severity > Severity::Info);
    let reported: FxHashSet<i32> = bad.filter_map(Finding::pid).collect();
    let is_news = |finding: &Finding| {
        finding.severity > Severity::Info || finding.pid().is_none_or(|pid| !reported.contains(&pid))
    };
    findings.retain(is_news);
}

impl Finding {
    pub(crate) fn new(
        check: &'static str,
        severity: Severity,
        summary: impl AsRef<str>,
        subject: Subject,
    ) -> Self {
        let summary = Text::from(crate::text::one_line(summary.as_ref()));
        let short = summary.clone();
        Self {
            check,
            severity,
            summary,
            short,
            about: Text::from(""),
            statement: None,
            subject,
            blocked: 0,
            since: None,
            row: None,
            began: None,
            ended: None,
            help: None,
            expected: None,
            details: Vec::new(),
        }
    }

    fn short(self, short: impl AsRef<str>) -> Self {
        Self { short: Text::from(crate::text::one_line(short.as_ref())), ..self }
    }

    fn about(self, about: impl AsRef<str>) -> Self {
        Self { about: Text::from(crate::text::one_line(about.as_ref())), ..self }
    }

    fn running(self, statement: Option<QueryText>) -> Self {
        Self { statement, ..self }
    }

    pub fn about_in(&self, channel: Channel) -> Cow<'_, str> {
        let Some(statement) = &self.statement else { return Cow::Borrowed(&self.about) };
        let statement = shown(channel, statement);
        let statement = crate::text::one_line_prefix(statement.trim(), QUERY);
        match (self.about.is_empty(), statement.is_empty()) {
            (_, true) => Cow::Borrowed(&self.about),
            (true, false) => Cow::Owned(statement.into_owned()),
            (false, false) => Cow::Owned(format!("{} · {statement}", self.about)),
        }
    }

    pub fn is_about(&self, party: Party) -> bool {
        match &self.subject {
            Subject::Party(own) => *own == party,
            Subject::Backend(id) => Party::Backend(id.pid) == party,
            _ => false,
        }
    }

    pub fn pid(&self) -> Option<i32> {
        match &self.subject {
            Subject::Backend(id) => Some(id.pid),
            Subject::Party(Party::Backend(pid)) => Some(*pid),
            _ => None,
        }
    }
}

/// The findings of a check for these rows, and one that counts the rows beyond the limit.
fn listed<T, F: Into<Option<Finding>>>(
    check: &'static str,
    mut rows: impl Iterator<Item = T>,
    mut finding: impl FnMut(T) -> F,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        rows.by_ref().take(LIMIT).filter_map(|row| finding(row).into()).collect();
    let left_out = rows.count() as u64;
    if left_out > 0 {
        let summary = format!("{} more findings of {check} are not listed", crate::text::count(left_out));
        findings.push(Finding::new(check, Severity::Info, summary, Subject::Server));
    }
    findings
}

/// At most `most` columns of a name from the server, as one line.
fn short(name: &str, most: usize) -> String {
    crate::text::fit(&crate::text::one_line_prefix(name, most), most).into_owned()
}

// A finding in its row of the first pane, where its age has a separate column.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowWords {
    text: Text,
    /// The part of `text` that names the locked object; may be empty.
    object: Text,
}

impl RowWords {
    fn with(self, more: &str) -> Self {
        Self { text: format!("{}{more}", self.text).into(), ..self }
    }
}

/// Abbreviations of a text that is too long, in this order. The part that names the locked object is removed last.
const STEPS: [&[(&str, &str)]; 3] = [
    &[("advisory lock \"", "\""), ("advisory lock ", "advisory ")],
    &[("idle in transaction", "idle in xact")],
    &[("continues now", "now"), ("continue now", "now")],
];

impl Finding {
    /// Sets the text of the row, in which `object` names the locked object; `began` is the start of the described state.
    fn in_row(self, began: Option<Timestamp>, text: impl AsRef<str>, object: &str) -> Self {
        let line = |text: &str| Text::from(crate::text::one_line(text));
        let row = RowWords { text: line(text.as_ref()), object: line(object) };
        Self { row: Some(row), began, ..self }
    }

    /// The text of the row in at most `room` columns: the numbers are cut last.
    pub fn row_text(&self, room: usize) -> String {
        let Some(RowWords { text, object }) = &self.row else {
            let text = if width(&self.summary) <= room { &self.summary } else { &self.short };
            return fit(text, room).into_owned();
        };
        let with = |taken: &[bool]| {
            let mut text = text.to_string();
            if taken.get(STEPS.len()) == Some(&true) && !object.is_empty() {
                let with_blank = format!(" {object}");
                let gone = if text.contains(&with_blank) { &with_blank } else { &**object };
                text = text.replacen(gone, "", 1);
            }
            for (_, pairs) in taken.iter().zip(STEPS).filter(|(taken, _)| **taken) {
                text = pairs.iter().fold(text, |text, (long, short)| text.replace(long, short));
            }
            text
        };
        let fits = |taken: &[bool]| width(&with(taken)) <= room;
        let mut taken = [false; STEPS.len() + 1];
        for step in 0..taken.len() {
            if fits(&taken) {
                break;
            }
            if let Some(taken) = taken.get_mut(step) {
                *taken = true;
            }
        }
        // Undoes abbreviations that a later step has made unnecessary.
        for step in (0..taken.len()).rev() {
            let mut less = taken;
            if let Some(taken) = less.get_mut(step) {
                *taken = false;
            }
            if fits(&less) {
                taken = less;
            }
        }
        shortened(&with(&taken), room)
    }

    pub fn row_since(&self) -> Option<Timestamp> {
        self.began.or(self.since)
    }
}

/// Cuts the text before the numbers.
fn shortened(text: &str, room: usize) -> String {
    let excess = width(text).saturating_sub(room);
    match text.rfind(", blocks ") {
        Some(at) if excess > 0 => {
            let (name, numbers) = text.split_at(at);
            format!("{}{numbers}", fit(name, width(name).saturating_sub(excess)))
        }
        _ => fit(text, room).into_owned(),
    }
}

/// A finding that reappears within this many seconds is not new.
const FORGOTTEN: i64 = 60;

/// How to notify. All off by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of its own")]
pub struct AlertWays {
    /// BEL (`\a`), which the terminal turns into a sound, a flash or a mark.
    pub bell: bool,
    pub title: bool,
    /// A desktop notification in the form that iTerm2 accepts.
    pub osc9: bool,
    /// A desktop notification in the form that urxvt accepts.
    pub osc777: bool,
}

/// Notifies an operator who does not watch the screen that something has become critical.
#[derive(Debug, Default)]
pub struct Alerts {
    /// When each was last seen. None before the first poll: its findings are already on the screen just opened.
    seen: Option<FxHashMap<(&'static str, Subject), Timestamp>>,
}

impl Alerts {
    /// The worst finding that became critical in this poll.
    pub fn next_new<'a>(&mut self, findings: &'a [Finding], at: Timestamp) -> Option<&'a Finding> {
        let is_first = self.seen.is_none();
        let seen = self.seen.get_or_insert_default();
        seen.retain(|_, last| (at - *last).num_seconds() < FORGOTTEN);
        let is_critical =
            |finding: &&Finding| finding.severity == Severity::Critical && finding.ended.is_none();
        let critical = findings.iter().filter(is_critical);
        let mut new = None;
        for finding in critical {
            let before = seen.insert((finding.check, finding.subject), at);
            new = new.or_else(|| before.is_none().then_some(finding));
        }
        new.filter(|_| !is_first)
    }
}
