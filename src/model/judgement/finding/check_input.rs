use super::{Deadlocks, Finding, NewRoots, Severity};
use crate::model::lock::{LockTag, Prepared};
use crate::model::thresholds::{Blocker, ExpectedBlocker, Thresholds};
use crate::model::view::SnapshotView;
use crate::model::wait_graph::{Party, Queue};
use crate::model::{QueryText, Timestamp, words};
use crate::text;

/// A view whose findings are not known yet.
#[derive(Debug, Clone, Copy)]
pub struct CheckInput<'a> {
    pub view: SnapshotView<'a>,
    /// Remembered deadlocks, including this snapshot.
    pub deadlocks: &'a Deadlocks,
    /// Since when each root has been one, including this graph.
    pub new_roots: &'a NewRoots,
    pub thresholds: &'a Thresholds,
}

impl<'a> std::ops::Deref for CheckInput<'a> {
    type Target = SnapshotView<'a>;

    fn deref(&self) -> &SnapshotView<'a> {
        &self.view
    }
}

impl CheckInput<'_> {
    /// The age as text, with a leading blank. Empty if not known.
    pub(super) fn age_text(&self, since: Option<Timestamp>) -> String {
        since.map_or_else(String::new, |since| format!(" {}", text::duration(self.age(since))))
    }

    pub(super) fn is_older(&self, since: Option<Timestamp>, seconds: f64) -> bool {
        since.is_some_and(|since| self.age(since) >= seconds)
    }

    /// `app@web-3 · accounts`: the session, and what it locks or waits for.
    pub(super) fn about(&self, pid: i32, target: Option<&str>) -> String {
        let backend = self.backend(pid);
        let who = backend.map(words::who).unwrap_or_default();
        let parts = [who.as_str(), target.unwrap_or_default()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
    }

    /// `accounts`, `"Prisma Migrate"`, `advisory 42`. `holder` is the process that holds it, which corroborates the name of
    /// an advisory lock.
    pub(super) fn target(&self, tag: &LockTag, holder: Option<i32>) -> String {
        let namer = self.view.namer(&self.lock_names, tag, holder);
        words::quoted(self.snapshot, &self.lock_names, tag, namer)
    }

    pub(super) fn statement(&self, pid: i32) -> Option<QueryText> {
        self.backend(pid)?.query.clone().filter(|query| !query.is_blank())
    }
}

pub(crate) fn party_text(party: Party) -> String {
    match party {
        Party::Backend(pid) => pid.to_string(),
        Party::Prepared(_) => "a prepared transaction".to_owned(),
    }
}

/// `4410`, `4410 and 4466`, `4410, 4466 and 5 more`.
pub(crate) fn parties_text(parties: &[Party]) -> String {
    let name = |party: &Party| party_text(*party);
    match parties {
        [] => "no session".to_owned(),
        [one] => name(one),
        [one, two] => format!("{} and {}", name(one), name(two)),
        [one, two, three] => format!("{}, {} and {}", name(one), name(two), name(three)),
        [one, two, rest @ ..] => format!("{}, {} and {} more", name(one), name(two), rest.len()),
    }
}

impl<'a> CheckInput<'a> {
    pub(super) fn expected(
        &self,
        party: Party,
        prepared: Option<&Prepared>,
        since: Option<Timestamp>,
    ) -> Option<&'a ExpectedBlocker> {
        let blocker = self.blocker(party, prepared, since);
        let holds = |name: &str| self.holds_only(party, name);
        self.view.view.expected.iter().find(|entry| entry.is_met(blocker, holds))
    }

    pub(super) fn expected_waiter(
        &self,
        party: Party,
        tag: &LockTag,
        since: Option<Timestamp>,
    ) -> Option<&'a ExpectedBlocker> {
        let blocker = self.blocker(party, None, since);
        let waits = |name: &str| self.is_called(tag, party, name);
        self.view.view.expected.iter().find(|entry| entry.is_met(blocker, waits))
    }

    /// `since`: the start of the longest wait behind it, if known.
    fn blocker<'b>(
        &'b self,
        party: Party,
        prepared: Option<&'b Prepared>,
        since: Option<Timestamp>,
    ) -> Blocker<'b> {
        let waited = since.map_or(0.0, |since| self.age(since));
        if let Some(row) = prepared {
            return Blocker { waited, ..Blocker::of_prepared(row) };
        }
        let backend = self.backend(party.pid());
        Blocker { waited, ..backend.map_or_else(Blocker::default, Blocker::of) }
    }

    fn holds_only(&self, party: Party, name: &str) -> bool {
        let is_holder = |queue: &&Queue| queue.holders.iter().any(|holder| holder.party == party);
        let mut held = self.view.view.graph.queues.iter().filter(is_holder).peekable();
        let mut awaited = |queue: &Queue| {
            queue
                .waiters
                .iter()
                .all(|waiter| self.is_called(self.index.awaited(&queue.tag, waiter.pid), party, name))
        };
        held.peek().is_some() && held.all(&mut awaited)
    }

    fn is_called(&self, tag: &LockTag, party: Party, name: &str) -> bool {
        words::is_called(self.snapshot, &self.lock_names, tag, self.backend(party.pid()), name)
    }
}

impl Finding {
    /// If an entry expects it, the finding is only informational, without a remedy.
    pub(super) fn expected(self, entry: Option<&ExpectedBlocker>) -> Self {
        let Some(entry) = entry else { return self };
        let words = crate::text::one_line(&entry.words()).into_owned();
        Self {
            severity: Severity::Info,
            summary: format!("{}{words}", self.summary).into(),
            short: format!("{}{words}", self.short).into(),
            row: self.row.map(|row| row.with(&words)),
            help: None,
            expected: Some(Box::new(entry.clone())),
            ..self
        }
    }
}
