//! What a session knows from its last poll, so that the server need not send it again.

use std::time::Instant;

use super::Limits;
use crate::clock;
use crate::pg::decode::backends::KnownBackends;
use crate::pg::decode::locks::KnownLocks;

/// As a time: nothing is known.
const NOTHING: &str = "0";

/// What the last statements brought that succeeded.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) locks: KnownLocks,
    pub(super) backends: KnownBackends,
    polls: u64,
    /// The locks are those of the narrow statement.
    narrow: bool,
    /// When they were last read without relying on anything known.
    whole_at: Option<Instant>,
    /// When more came than is read whole, although what was quiet did not come.
    too_many_at: Option<Instant>,
}

/// What the server is told for one poll.
#[derive(Debug)]
pub(super) struct Telling {
    /// The number of the poll, which the answers repeat: they are of this telling and of no other.
    pub(super) poll: String,
    /// Sessions that have done nothing since then need no rows; `0` asks for all.
    pub(super) since: String,
    /// The digests of the activity that is known.
    pub(super) digests: String,
    /// Only advisory and awaited locks.
    pub(super) narrow: bool,
}

impl Known {
    /// What to say in the next poll.
    pub(super) fn telling(&mut self, limits: &Limits) -> Telling {
        self.polls += 1;
        let rows = self.locks.rows.len();
        let is_recent = |at: Option<Instant>| {
            at.is_some_and(|at| clock::monotonic().duration_since(at) < limits.quiet_for)
        };
        let narrow = rows as u64 + self.locks.omitted > limits.whole_table || is_recent(self.too_many_at);
        let is_worth_it = rows >= limits.quiet_from && narrow == self.narrow && is_recent(self.whole_at);
        let since = if is_worth_it { self.locks.since.clone() } else { NOTHING.to_owned() };
        let digests = match &*self.backends.digests {
            "" => "{}".to_owned(),
            digests => digests.to_owned(),
        };
        Telling { poll: self.polls.to_string(), since, digests, narrow }
    }

    /// Takes over the locks that were read.
    pub(super) fn learn(&mut self, telling: &Telling, locks: &KnownLocks, limits: &Limits) {
        self.locks = locks.clone();
        self.narrow = telling.narrow;
        if telling.since == NOTHING {
            self.whole_at = Some(clock::monotonic());
        } else if locks.sent > limits.whole_scan {
            self.too_many_at = Some(clock::monotonic());
        }
    }
}
