//! Fifty sessions that ask for more than the limit lets through.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fastrand::Rng;
use tokio_postgres::{Client, Error};

use super::sessions::{Failures, SessionWork, Sessions, lock};
use super::tally::{ContestOutcome, Tally, count};
use super::{Contest, Environment};
use locktop_locks::call::CallError;
use locktop_locks::rate_limit::{Decision, RateLimit};

pub(super) const KEYS: [&str; 9] = [
    "sessions",
    "limit",
    "requests",
    "allowed",
    "refused",
    "windows",
    "max_in_window",
    "windows_met",
    "errors",
];

const LIMIT: i32 = 100;
/// A window, in seconds and in microseconds.
const SECONDS: i32 = 1;
const WINDOW: i64 = 1_000_000;
const SESSIONS: usize = 50;
const SHOWN: usize = 12;
const KEY: &str = "user:123:api";
/// So many windows are remembered.
const REMEMBERED: usize = 1_000;

/// What the sessions were told.
#[derive(Debug, Default)]
struct Windows {
    /// How many requests were let through, by the end of their window in microseconds since 1970.
    allowed: BTreeMap<i64, u64>,
    requests: u64,
    refused: u64,
    begun: u64,
    most: u64,
    /// Windows that began before the one before was over.
    met: u64,
}

impl Windows {
    fn note(&mut self, decision: &Decision) {
        self.requests += 1;
        if !decision.allowed {
            self.refused += 1;
            return;
        }
        // A request that was let through has a window.
        let end = decision.window_end.map_or(0, |end| end.timestamp_micros());
        if !self.allowed.contains_key(&end) {
            self.begun += 1;
            self.met += u64::from(self.allowed.range(end - WINDOW + 1..end + WINDOW).next().is_some());
        }
        let count = self.allowed.entry(end).or_default();
        *count += 1;
        self.most = self.most.max(*count);
        if self.allowed.len() > REMEMBERED {
            self.allowed.pop_first();
        }
    }
}

#[derive(Debug)]
pub(super) struct RateLimits {
    sessions: usize,
    limit: RateLimit,
    windows: Mutex<Windows>,
}

impl RateLimits {
    pub(super) fn begin(environment: &Environment) -> Sessions<Self> {
        let limit = RateLimit { schema: environment.schema.clone(), ..RateLimit::new(LIMIT, SECONDS) };
        let sessions = environment.sessions(SESSIONS, SHOWN);
        Sessions::start(environment, Self { sessions, limit, windows: Mutex::default() }, sessions)
    }
}

impl SessionWork for RateLimits {
    const NAME: &'static str = "api";
    const LONGEST: u64 = 120;

    async fn turn(&self, _: usize, client: &Client, _: &mut Rng) -> Result<(), CallError> {
        let decision = self.limit.take(client, KEY).await?;
        lock(&self.windows).note(&decision);
        Ok(())
    }

    async fn outcome(&self, _: &Client, failures: &Failures, _: bool) -> Result<ContestOutcome, Error> {
        let windows = lock(&self.windows);
        let limit = u64::from(LIMIT.unsigned_abs());
        let numbers = [
            count(self.sessions),
            limit,
            windows.requests,
            windows.requests - windows.refused,
            windows.refused,
            windows.begun,
            windows.most,
            windows.met,
            failures.count(),
        ];
        Ok(ContestOutcome::new(Tally::new(Contest::RateLimit.as_str(), &KEYS, numbers))
            .must_not(windows.most > limit, format!("{} requests of {limit} in a window", windows.most))
            .zero(&[("windows_met", "windows that began before the one before was over")])
            .some("allowed", "no request was let through", failures.first().as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn what_was_let_through_is_counted_by_window() {
        let told = |allowed, end| Decision {
            allowed,
            count: None,
            window_end: DateTime::from_timestamp_micros(end),
        };
        let mut windows = Windows::default();
        for (allowed, end) in [(true, 5_000_000), (true, 5_000_000), (false, 5_000_000), (true, 6_000_000)] {
            windows.note(&told(allowed, end));
        }
        assert_eq!(
            (windows.requests, windows.refused, windows.begun, windows.most, windows.met),
            (4, 1, 2, 2, 0)
        );
        windows.note(&told(true, 6_999_999));
        assert_eq!(windows.met, 1);
        (0..2_000).for_each(|n| windows.note(&told(true, 10_000_000 + n * WINDOW)));
        assert_eq!((windows.allowed.len(), windows.begun, windows.met), (REMEMBERED, 2_003, 1));
    }
}
