//! Work between the polls, on their connection, and when tables are searched again.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use super::SectionError;
use crate::clock;
use crate::model::snapshot::Section;
use crate::model::{Text, Timestamp};

/// Time until what is known is searched again.
pub(super) const RENEW: Duration = Duration::from_secs(30);
/// Shortest pause after a failure; it doubles with each further consecutive one.
pub(super) const REST: Duration = Duration::from_secs(2);
/// A search pauses for this many times as long as it took, so that it costs at most a hundredth of a core, whatever the
/// catalogs contain.
const PAUSE: u32 = 100;
/// Longest pause of a search.
const LONGEST: Duration = Duration::from_secs(600);

/// Pause of a search that took this long and must not be repeated before `least`.
pub(super) fn rest(least: Duration, took: Duration) -> Duration {
    least.max(took.saturating_mul(PAUSE)).min(LONGEST)
}

#[derive(Debug)]
pub(super) struct BackgroundResult<T> {
    pub(super) result: Result<T, Text>,
    pub(super) took: Duration,
}

#[derive(Debug)]
pub(super) struct Background<T>(Option<JoinHandle<BackgroundResult<T>>>);

impl<T> Default for Background<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Send + 'static> Background<T> {
    /// Whether work was started and its result not yet taken.
    pub(super) fn is_begun(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn is_running(&self) -> bool {
        self.0.as_ref().is_some_and(|work| !work.is_finished())
    }

    pub(super) fn begin(&mut self, work: impl Future<Output = Result<T, SectionError>> + Send + 'static) {
        let started = clock::monotonic();
        self.0 = Some(tokio::spawn(async move {
            let result = work.await.map_err(|error| error.text());
            BackgroundResult { result, took: clock::monotonic().duration_since(started) }
        }));
    }

    /// Waits at most `timeout` for the result; None if the work is still in progress or none was started.
    pub(super) async fn take(&mut self, timeout: Duration) -> Option<BackgroundResult<T>> {
        let work = self.0.as_mut()?;
        let brought = tokio::time::timeout(timeout, work).await.ok()?;
        self.0 = None;
        Some(brought.unwrap_or_else(|error| BackgroundResult {
            result: Err(error.to_string().into()),
            took: Duration::ZERO,
        }))
    }
}

/// A search that is repeated: when it is due again, and its result for the snapshots.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    /// Start of the last search; None before the first.
    began: Option<Instant>,
    took: Duration,
    failures: u32,
    is_doubtful: bool,
    found: Section<()>,
    /// The result counts from the next snapshot on.
    is_new: bool,
}

impl Renewal {
    pub(super) fn is_due(&self) -> bool {
        self.began.is_none_or(|began| clock::monotonic().duration_since(began) > self.rest())
    }

    fn rest(&self) -> Duration {
        let least = match self.failures.checked_sub(1) {
            Some(before) => REST.saturating_mul(2_u32.saturating_pow(before)),
            None if self.is_doubtful => REST,
            None => RENEW,
        };
        rest(least, self.took)
    }

    pub(super) fn begin(&mut self) {
        self.began = Some(clock::monotonic());
        self.is_doubtful = false;
    }

    /// Takes note of the result; None if the search failed.
    pub(super) fn end<T>(&mut self, BackgroundResult { result, took }: BackgroundResult<T>) -> Option<T> {
        self.took = took;
        match result {
            Ok(found) => {
                self.failures = 0;
                self.succeed();
                Some(found)
            }
            Err(reason) => {
                self.failures = self.failures.saturating_add(1);
                self.found = self.found.stale(reason);
                self.is_new = false;
                None
            }
        }
    }

    pub(super) fn succeed(&mut self) {
        (self.found, self.is_new) = (Section::default(), true);
    }

    /// The result may be outdated: the next search is sooner.
    pub(super) fn doubt(&mut self) {
        self.is_doubtful = true;
    }

    /// Why it is not known what there is, if no search of this session has succeeded.
    pub(super) fn unknown(&self) -> Option<&Text> {
        self.found.error.as_ref().filter(|_| self.found.taken_at.is_none())
    }

    /// The result for a snapshot of this time. `before` is from the previous snapshot, which may be from an earlier session.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_costs_a_hundredth_of_the_time_and_one_that_fails_rests_longer() {
        let rest = |took, failures, is_doubtful| {
            let took = Duration::from_millis(took);
            Renewal { took, failures, is_doubtful, ..Renewal::default() }.rest().as_secs()
        };
        for (took, failures, is_doubtful, seconds) in [
            (5, 0, false, 30),
            (5, 0, true, 2),
            (500, 0, false, 50),
            (500, 0, true, 50),
            (5, 1, false, 2),
            (100, 1, false, 10),
            (100, 6, false, 64),
            (3000, 1, false, 300),
            (3000, 9, false, 512),
            (3000, 10, false, 600),
            (3000, u32::MAX, false, 600),
            (90_000, 0, false, 600),
        ] {
            assert_eq!(rest(took, failures, is_doubtful), seconds, "{took} ms, {failures} failures");
        }
    }
}
