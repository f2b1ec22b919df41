//! What is done beside the polls, on their connection, and when tables are looked for again.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::section_error::SectionError;
use crate::clock;
use crate::model::snapshot::Section;
use crate::model::{Text, Timestamp};

/// What is known is looked for again after this long.
pub(super) const RENEW: Duration = Duration::from_secs(30);
/// After a failure sooner, but not before this.
pub(super) const REST: Duration = Duration::from_secs(2);

/// One piece of work at a time, in a task of its own, which ends with this.
#[derive(Debug)]
pub(super) struct Background<T>(Option<JoinHandle<Result<T, SectionError>>>);

impl<T> Default for Background<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Send + 'static> Background<T> {
    /// Whether work was begun of which nobody has taken what it brought.
    pub(super) fn is_begun(&self) -> bool {
        self.0.is_some()
    }

    /// Whether it goes on just now.
    pub(super) fn is_running(&self) -> bool {
        self.0.as_ref().is_some_and(|work| !work.is_finished())
    }

    pub(super) fn begin(&mut self, work: impl Future<Output = Result<T, SectionError>> + Send + 'static) {
        self.0 = Some(tokio::spawn(work));
    }

    /// What it brought, waited for no longer than `timeout`, or why it failed; None where it goes on, or nothing was begun.
    pub(super) async fn take(&mut self, timeout: Duration) -> Option<Result<T, Text>> {
        let work = self.0.as_mut()?;
        let brought = tokio::time::timeout(timeout, work).await.ok()?;
        self.0 = None;
        Some(match brought {
            Ok(brought) => brought.map_err(|error| error.text()),
            Err(error) => Err(error.to_string().into()),
        })
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        if let Some(work) = &self.0 {
            work.abort();
        }
    }
}

/// When something was last found, and why the last search for it failed.
#[derive(Debug, Default)]
pub(super) struct Detected {
    found: Section<()>,
    /// What was found counts from the next snapshot on.
    is_new: bool,
}

impl Detected {
    pub(super) fn succeed(&mut self) {
        *self = Self { found: Section::default(), is_new: true };
    }

    pub(super) fn fail(&mut self, reason: Text) {
        self.found = self.found.stale(reason);
        self.is_new = false;
    }

    /// Why it is not known, when no search of this session has succeeded.
    pub(super) fn unknown(&self) -> Option<&Text> {
        self.found.error.as_ref().filter(|_| self.found.taken_at.is_none())
    }

    /// For a snapshot of this time; `before` is that of the snapshot before, which may be of an earlier session.
    pub(super) fn at(&mut self, taken_at: Timestamp, before: Option<&Section<()>>) -> Section<()> {
        if std::mem::take(&mut self.is_new) {
            self.found = Section::fresh(Vec::new(), taken_at);
        }
        match self.unknown() {
            Some(reason) => before.cloned().unwrap_or_default().stale(reason.clone()),
            None => self.found.clone(),
        }
    }
}

/// When tables are looked for again.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    /// None before the first look.
    looked: Option<Instant>,
    has_failed: bool,
}

impl Renewal {
    pub(super) fn is_due(&self) -> bool {
        self.looked.is_none_or(|looked| {
            let age = clock::monotonic().duration_since(looked);
            age > RENEW || (self.has_failed && age > REST)
        })
    }

    /// A look begins now: it is due again after [`RENEW`], unless it fails.
    pub(super) fn begin(&mut self) {
        *self = Self { looked: Some(clock::monotonic()), has_failed: false };
    }

    /// The look failed, or what it found may not be what it was.
    pub(super) fn fail(&mut self) {
        self.has_failed = true;
    }
}
