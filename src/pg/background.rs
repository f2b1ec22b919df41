//! What is done beside the polls, on their connection, and when tables are looked for again.

use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinHandle};

use crate::clock;

/// What is known is looked for again after this long.
pub(super) const RENEW: Duration = Duration::from_secs(30);
/// After a failure sooner, but not before this.
pub(super) const REST: Duration = Duration::from_secs(2);

/// One piece of work at a time, in a task of its own, which ends with this.
#[derive(Debug)]
pub(super) struct Background<T>(Option<JoinHandle<T>>);

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

    pub(super) fn begin(&mut self, work: impl Future<Output = T> + Send + 'static) {
        self.0 = Some(tokio::spawn(work));
    }

    /// What it brought, waited for no longer than `timeout`; None where it goes on, or nothing was begun.
    pub(super) async fn take(&mut self, timeout: Duration) -> Option<Result<T, JoinError>> {
        let work = self.0.as_mut()?;
        let brought = tokio::time::timeout(timeout, work).await.ok()?;
        self.0 = None;
        Some(brought)
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        if let Some(work) = &self.0 {
            work.abort();
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
