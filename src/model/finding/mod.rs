//! Small checks over a snapshot: what is wrong, how bad, and which key helps.
//!
//! Each check is a function in a file of its own that looks at a [`CheckInput`] and returns what it found. None reads
//! more than once over the locks, and none says more than a hundred things at a time.

mod adapter;
mod adapter_leader;
mod adapter_limit;
mod adapter_stuck;
mod check_input;
mod connections;
mod convoy;
mod cycle;
pub(crate) mod deadlocks;
mod expected;
mod forgotten;
mod generator;
mod growth;
mod hidden;
mod idle_lock;
mod lease;
mod limit;
pub mod lock_name_query;
pub mod lock_table;
mod long_running;
mod new_roots;
mod pile_up;
mod prepared;
mod queue;
mod redis_lock;
mod rights;
mod root_blocker;
mod row;
mod silent;
mod stale;
mod target;
mod task;
mod unserved;
mod wait;
pub mod wait_event;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use super::backend::BackendId;
use super::expected::ExpectedBlocker;
use super::id_generator::GeneratorId;
use super::lease::LeaseId;
use super::lock::LockTag;
use super::output::{Channel, shown};
use super::rate_limit::LimitId;
use super::systems::TextId;
use super::task::TaskId;
use super::wait_graph::Party;
use super::work_queue::ItemId;
use super::{QueryText, Text, Timestamp};
pub use check_input::CheckInput;
pub(crate) use check_input::parties_text;
pub use deadlocks::Deadlocks;
pub use new_roots::NewRoots;
pub use row::RowWords;

/// How much a finding or an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing, and nothing has to be done.
    Info,
    /// Somebody will have to do something, if it goes on.
    Warning,
    /// Somebody has to do something now: this is what rings and notifies.
    Critical,
}

/// The row a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A session or another process, by process id and start.
    Backend(BackendId),
    /// A prepared transaction or a backend in the wait graph.
    Party(Party),
    /// What is locked, whoever has it.
    Lock(LockTag),
    /// A task of `scheduled_tasks`, by its table and id.
    Task(TaskId),
    /// A lease, in a table or in Redis.
    Lease(LeaseId),
    /// An item of the work queue.
    Item(ItemId),
    /// A job of another system.
    Job(TextId),
    /// A queue of another system.
    JobQueue(TextId),
    /// A lease of another system.
    JobLease(TextId),
    /// The work queue as a whole.
    Queue,
    /// A row of a table of rate limits.
    Limit(LimitId),
    /// A worker's row of a table of id generators.
    Generator(GeneratorId),
    /// The server as a whole.
    Server,
    /// A section of the snapshot, by its name in the JSON.
    Section(&'static str),
}

/// What is wrong, in words, and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the check, stable, for machines: `root_blocker`, `cycle`, …
    pub check: &'static str,
    /// How much it matters; the list is in this order.
    pub severity: Severity,
    /// One line, for people, without anything that a screen would not take.
    pub summary: Text,
    /// The same in fewer words, for 80 columns.
    pub short: Text,
    /// Whose session it is and what is locked, or what to do, as far as the summary does not say it; one harmless
    /// line, empty where there is nothing.
    pub about: Text,
    /// What that session runs, or ran last: a part of what is said about it, as far as a channel shows statements.
    pub statement: Option<QueryText>,
    /// The row to go to from it.
    pub subject: Subject,
    /// Waiting groups behind it; 0 where nobody waits.
    pub blocked: u32,
    /// Since when, as far as that is known: the start of the longest wait, of the idleness, …
    pub since: Option<Timestamp>,
    /// Its words in a row of the first pane; none if they are those of the summary.
    pub row: Option<RowWords>,
    /// Since when what that row states has been so; none if that is `since`.
    pub began: Option<Timestamp>,
    /// When it ended, of one that the screens show for a moment longer; none of what is the case.
    pub ended: Option<Timestamp>,
    /// Name of the action that helps, as the config's `[keys]` has it: `terminate`, `cancel`, `recover`.
    pub help: Option<&'static str>,
    /// The entry of `[[expected]]` that expects this blocker.
    pub expected: Option<Box<ExpectedBlocker>>,
    /// What there is to say beyond one line, where nothing else says it: a harmless line each.
    pub details: Vec<Text>,
}

/// Findings of one check that are told apart; of the rest only the number is.
const LIMIT: usize = 100;

/// Columns of a statement that are told.
const QUERY: usize = 200;

/// A check looks and says what it found.
type Check = fn(&CheckInput<'_>) -> Vec<Finding>;

/// Every check, and whether it is about locks. Among findings that are equally bad, those of an earlier check come
/// first.
const CHECKS: &[(Check, bool)] = &[
    (cycle::check, true),
    (root_blocker::check, true),
    (prepared::check, true),
    (convoy::check, true),
    (wait::check, true),
    (wait_event::check, false),
    (connections::check, false),
    (lock_table::check, true),
    (pile_up::check, false),
    (deadlocks::check, false),
    (task::check, false),
    (silent::check, false),
    (unserved::check, false),
    (lease::check, false),
    (redis_lock::check, false),
    (queue::check, false),
    (adapter::check, false),
    (adapter_stuck::check, false),
    (adapter_limit::check, false),
    (generator::check, false),
    (limit::check, false),
    (stale::check, false),
    (idle_lock::check, true),
    (forgotten::check, true),
    (long_running::check, true),
    (rights::check, false),
    (growth::check, false),
    (hidden::check, false),
];

/// How many checks there are, of those that can be made with or without the locks.
pub fn checks(has_locks: bool) -> usize {
    CHECKS.iter().filter(|(_, about_locks)| has_locks || !about_locks).count()
}

/// All findings, worst first: by severity, then by how many wait behind it, then the longest. Locks that are not of
/// this moment are none to speak of: that they are old is a finding of its own.
pub fn find(look: &CheckInput<'_>) -> Vec<Finding> {
    let has_locks = look.snapshot.locks.is_known();
    let checks = CHECKS.iter().filter(|(_, about_locks)| has_locks || !about_locks);
    let mut findings: Vec<Finding> = checks.flat_map(|(check, _)| check(look)).collect();
    convoy::one_for_each(&mut findings, look);
    findings.sort_by(|a, b| {
        let worst = b.severity.cmp(&a.severity).then(b.blocked.cmp(&a.blocked));
        // An earlier start is longer; one that is not known is shorter than any.
        worst.then(a.since.is_none().cmp(&b.since.is_none())).then(a.since.cmp(&b.since))
    });
    cover(&mut findings);
    findings
}

/// Of a session of which something bad is told, what is merely worth knowing need not be.
fn cover(findings: &mut Vec<Finding>) {
    let bad = findings.iter().filter(|finding| finding.severity > Severity::Info);
    let told: FxHashSet<i32> = bad.filter_map(Finding::pid).collect();
    let is_news = |finding: &Finding| {
        finding.severity > Severity::Info || finding.pid().is_none_or(|pid| !told.contains(&pid))
    };
    findings.retain(is_news);
}

impl Finding {
    /// A finding in one wording, about a moment of which nothing more is known.
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

    /// With a shorter wording.
    fn short(self, short: impl AsRef<str>) -> Self {
        Self { short: Text::from(crate::text::one_line(short.as_ref())), ..self }
    }

    /// With what the summary does not say.
    fn about(self, about: impl AsRef<str>) -> Self {
        Self { about: Text::from(crate::text::one_line(about.as_ref())), ..self }
    }

    /// With the statement of the session that it is about.
    fn running(self, statement: Option<QueryText>) -> Self {
        Self { statement, ..self }
    }

    /// What the summary does not say, with as much of the statement as a channel shows: one harmless line.
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

    /// Whether it is about this party of the wait graph.
    pub fn is_about(&self, party: Party) -> bool {
        match &self.subject {
            Subject::Party(own) => *own == party,
            Subject::Backend(id) => Party::Backend(id.pid) == party,
            _ => false,
        }
    }

    /// The process that it is about.
    pub fn pid(&self) -> Option<i32> {
        match &self.subject {
            Subject::Backend(id) => Some(id.pid),
            Subject::Party(Party::Backend(pid)) => Some(*pid),
            _ => None,
        }
    }

    /// What stands for the findings of a check beyond [`LIMIT`].
    fn more(check: &'static str, left_out: usize) -> Option<Self> {
        let number = crate::text::count(left_out as u64);
        let summary = || format!("{number} more findings of {check} are not listed");
        (left_out > 0).then(|| Self::new(check, Severity::Info, summary(), Subject::Server))
    }
}
