//! Blockers that the config expects.

use super::look::Look;
use super::{Finding, Severity};
use crate::model::expected::{Blocker, ExpectedBlocker};
use crate::model::lock::{LockTag, Prepared};
use crate::model::wait_graph::{Party, Queue};
use crate::model::words;

impl<'a> Look<'a> {
    /// The entry that expects a party to hold what others wait for.
    pub(super) fn expected(&self, party: Party, prepared: Option<&Prepared>) -> Option<&'a ExpectedBlocker> {
        let blocker = self.blocker(party, prepared);
        let holds = |name: &str| self.holds_only(party, name);
        self.scene.thresholds.expected.iter().find(|entry| entry.is_met(blocker, holds))
    }

    /// The entry that expects a party to wait for a lock, with others behind it.
    pub(super) fn expected_waiter(&self, party: Party, tag: &LockTag) -> Option<&'a ExpectedBlocker> {
        let blocker = self.blocker(party, None);
        let waits = |name: &str| self.is_called(tag, party, name);
        self.scene.thresholds.expected.iter().find(|entry| entry.is_met(blocker, waits))
    }

    fn blocker<'b>(&'b self, party: Party, prepared: Option<&'b Prepared>) -> Blocker<'b> {
        if let Some(row) = prepared {
            return Blocker {
                application: None,
                user: row.owner.as_deref(),
                database: row.database.as_deref(),
            };
        }
        self.backend(party.pid()).map_or_else(Blocker::default, |backend| Blocker {
            application: backend.application.as_deref(),
            user: backend.user.as_deref(),
            database: backend.database.as_deref(),
        })
    }

    /// Whether a lock of that name is all that anybody waits for behind a holder.
    fn holds_only(&self, party: Party, name: &str) -> bool {
        let is_holder = |queue: &&Queue| queue.holders.iter().any(|holder| holder.party == party);
        let mut held = self.scene.graph.queues.iter().filter(is_holder).peekable();
        let mut awaited = |queue: &Queue| {
            queue
                .waiters
                .iter()
                .all(|waiter| self.is_called(self.awaited(&queue.tag, waiter.pid), party, name))
        };
        held.peek().is_some() && held.all(&mut awaited)
    }

    fn is_called(&self, tag: &LockTag, party: Party, name: &str) -> bool {
        words::is_called(self.scene.snapshot, self.scene.lock_names, tag, self.backend(party.pid()), name)
    }
}

impl Finding {
    /// Worth knowing and no more where an entry expects it: nobody is to be ended for that.
    pub(super) fn expected(self, entry: Option<&ExpectedBlocker>) -> Self {
        let Some(entry) = entry else { return self };
        let words = crate::text::one_line(&entry.words()).into_owned();
        Self {
            severity: Severity::Info,
            summary: format!("{}{words}", self.summary).into(),
            short: format!("{}{words}", self.short).into(),
            help: None,
            expected: true,
            ..self
        }
    }
}
