use super::check_input::CheckInput;
use super::{Finding, Severity};
use crate::model::Timestamp;
use crate::model::expected::{Blocker, ExpectedBlocker};
use crate::model::lock::{LockTag, Prepared};
use crate::model::wait_graph::{Party, Queue};
use crate::model::words;

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
                .all(|waiter| self.is_called(self.awaited(&queue.tag, waiter.pid), party, name))
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
