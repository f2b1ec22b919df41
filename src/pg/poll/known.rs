//! What a session knows from its last poll, so that the server need not send it again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use super::PollLimits;
use crate::clock;
use crate::model::wait_graph::Answer;
use crate::pg::SectionError;
use crate::pg::decode::backends::KnownBackends;
use crate::pg::decode::locks::KnownLocks;

/// As a time: nothing is known.
const NOTHING: &str = "0";

/// Results of the last statements that succeeded.
#[derive(Debug, Default)]
pub(super) struct LastResults {
    pub(super) locks: KnownLocks,
    pub(super) backends: KnownBackends,
    polls: u64,
    /// The locks are from the narrow statement.
    narrow: bool,
    /// When they were last read in full; None if the next poll must read them in full.
    whole_at: Option<Instant>,
    answers: Vec<Answer>,
    /// Start of the last poll, by locktop's clock.
    sent_at: Option<Instant>,
    /// This role may not read the sessions, so inactive ones cannot be detected.
    is_blind: bool,
    /// When more rows than the limit for a whole scan arrived, although inactive sessions were left out.
    too_many_at: Option<Instant>,
}

/// The data sent to the server for one poll.
#[derive(Debug)]
pub(super) struct ChangesToSend {
    /// Number of the poll, which the answers repeat so that they can be matched.
    pub(super) poll: String,
    /// Sessions inactive since then need no rows; `0` requests all.
    pub(super) since: String,
    pub(super) digests: String,
    /// Only advisory and awaited locks.
    pub(super) narrow: bool,
    at: Instant,
}

impl ChangesToSend {
    /// Whether a time is sent.
    pub(super) fn sends_since(&self) -> bool {
        self.since != NOTHING
    }
}

impl LastResults {
    pub(super) fn changes_to_send(&mut self, limits: &PollLimits) -> ChangesToSend {
        self.polls += 1;
        let rows = self.locks.rows.len();
        let is_recent = |at: Option<Instant>| {
            at.is_some_and(|at| clock::monotonic().duration_since(at) < limits.quiet_for)
        };
        let narrow = rows as u64 + self.locks.omitted > limits.whole_table || is_recent(self.too_many_at);
        let is_worth_it =
            !self.is_blind && rows >= limits.quiet_from && narrow == self.narrow && is_recent(self.whole_at);
        let since = seconds(&self.locks.since).filter(|_| is_worth_it);
        let since = since.map_or_else(
            || NOTHING.to_owned(),
            |since| format!("{:.6}", since - limits.clock_slack.as_secs_f64()),
        );
        let digests = match &*self.backends.digests {
            "" => "{}".to_owned(),
            digests => digests.to_owned(),
        };
        ChangesToSend { poll: self.polls.to_string(), since, digests, narrow, at: clock::monotonic() }
    }

    /// Takes over the locks that were read. The next poll reads all of them if they were not read, if a row is missing
    /// according to the server's `answers`, or if the server's clock was set back.
    pub(super) fn learn(
        &mut self,
        changes: &ChangesToSend,
        (locks, answers): (&Result<KnownLocks, SectionError>, &[Answer]),
        limits: &PollLimits,
    ) {
        let now = clock::monotonic();
        let passed = self.sent_at.replace(changes.at).map_or(Duration::ZERO, |before| changes.at - before);
        let locks = match locks {
            Ok(locks) => locks,
            Err(error) => {
                self.is_blind |=
                    changes.sends_since() && error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
                if matches!(error, SectionError::TooMuch(_)) {
                    self.too_many_at = Some(now);
                }
                self.whole_at = None;
                return;
            }
        };
        let went_back =
            changes.sends_since() && is_behind(&self.locks.since, &locks.since, passed, limits.clock_slack);
        // The same rows and answers lack no more than before.
        let is_same = Arc::ptr_eq(&self.locks.rows, &locks.rows) && self.answers == answers;
        let is_short = changes.sends_since() && !is_same && locks.lacks(answers);
        self.answers = answers.to_vec();
        self.locks = locks.clone();
        self.narrow = changes.narrow;
        if !changes.sends_since() {
            self.whole_at = Some(now);
        } else if went_back || is_short {
            self.whole_at = None;
        } else if locks.sent > limits.whole_scan {
            self.too_many_at = Some(now);
        }
    }
}

/// A time of the server, in seconds since 1970.
fn seconds(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Whether the time passed here exceeds that between two server times by so much that the server's clock was set back by
/// about the slack or more.
fn is_behind(before: &str, after: &str, passed: Duration, slack: Duration) -> bool {
    let Some((before, after)) = seconds(before).zip(seconds(after)) else { return true };
    // An answer may be delayed on its way.
    after - before < passed.as_secs_f64() - (slack.as_secs_f64() * 0.8).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_is_noticed() {
        let second = Duration::from_secs(1);
        for (before, after, expected) in [
            ("1795361880.5", "1795361881.5", false),
            ("1795361880.5", "1795361878.5", false),
            ("1795361880.5", "1795361870.5", true),
            ("1795361880.5", "1795365480.5", false),
            ("1795361880.5", "", true),
        ] {
            assert_eq!(is_behind(before, after, second, second * 5), expected, "{before} {after}");
        }
        assert!(is_behind("1795361880.5", "1795361881.5", second * 60, second * 5));
    }
}
