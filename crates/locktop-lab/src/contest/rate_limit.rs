//! Fifty sessions that ask for more than the limit allows.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fastrand::Rng;
use tokio_postgres::{Client, Error};

use super::runner::{Report, Runner, SessionWork};
use super::tally::{ContestOutcome, Tally, count, tally};
use super::{Contest, Environment, Rules, lock};
use locktop_locks::Error as LockError;
use locktop_tasks::rate_limit::{Decision, RateLimit};

tally! {
    sessions limit requests allowed refused windows max_in_window windows_met errors
}

const LIMIT: i32 = 100;
/// A window, in seconds and in microseconds.
const SECONDS: i32 = 1;
const WINDOW: i64 = 1_000_000;
const SESSIONS: usize = 50;
const SHOWN: usize = 12;
const KEY: &str = "user:123:api";
const REMEMBERED: usize = 1_000;

#[derive(Debug, Default)]
struct Windows {
    /// Allowed requests, by the end of their window in microseconds since 1970.
    allowed: BTreeMap<i64, u64>,
    numbers: Numbers,
}

impl Windows {
    fn note(&mut self, decision: &Decision) {
        let Self { allowed, numbers } = self;
        numbers.requests += 1;
        if !decision.allowed {
            numbers.refused += 1;
            return;
        }
        numbers.allowed += 1;
        // A request that was allowed has a window.
        let end = decision.window_end.map_or(0, |end| end.timestamp_micros());
        if !allowed.contains_key(&end) {
            numbers.windows += 1;
            // One that began before the previous one was over.
            let has_met = allowed.range(end - WINDOW + 1..end + WINDOW).next().is_some();
            numbers.windows_met += u64::from(has_met);
        }
        let count = allowed.entry(end).or_default();
        *count += 1;
        numbers.max_in_window = numbers.max_in_window.max(*count);
        if allowed.len() > REMEMBERED {
            allowed.pop_first();
        }
    }
}

#[derive(Debug)]
struct RateLimits {
    sessions: usize,
    limit: RateLimit,
    windows: Mutex<Windows>,
}

pub(super) fn begin(environment: &Environment) -> Runner {
    let limit = RateLimit { schema: environment.schema.clone(), ..RateLimit::new(LIMIT, SECONDS) };
    let sessions = if environment.options.headless { SESSIONS } else { SHOWN };
    Runner::sessions(environment, RateLimits { sessions, limit, windows: Mutex::default() }, sessions)
}

impl SessionWork for RateLimits {
    const NAME: &'static str = "api";
    const LONGEST: u64 = 120;

    async fn attempt(&self, _: usize, client: &Client, _: &mut Rng) -> Result<(), LockError> {
        let decision = self.limit.take(client, KEY).await?;
        lock(&self.windows).note(&decision);
        Ok(())
    }
}

impl Rules for RateLimits {
    async fn count(&self, _: &Client, report: &Report) -> Result<ContestOutcome, Error> {
        let (sessions, limit) = (count(self.sessions), u64::from(LIMIT.unsigned_abs()));
        let mut found = Numbers { sessions, limit, ..lock(&self.windows).numbers };
        found.extend(report.numbers(&KEYS));
        let most = found.max_in_window;
        Ok(ContestOutcome::new(found.tally(Contest::RateLimit.as_str()))
            .must_not(most > limit, format!("{most} requests of {limit} in a window"))
            .zero(&[("windows_met", "windows that began before the previous one ended")])
            .some("allowed", "no request was permitted", report.first_error.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    #[test]
    fn allowed_requests_are_counted_per_window() {
        let decision = |allowed, end| Decision {
            allowed,
            count: None,
            window_end: DateTime::from_timestamp_micros(end),
        };
        let mut windows = Windows::default();
        for (allowed, end) in [(true, 5_000_000), (true, 5_000_000), (false, 5_000_000), (true, 6_000_000)] {
            windows.note(&decision(allowed, end));
        }
        let Numbers { requests, refused, windows: begun, max_in_window, windows_met, .. } = windows.numbers;
        assert_eq!((requests, refused, begun, max_in_window, windows_met), (4, 1, 2, 2, 0));
        windows.note(&decision(true, 6_999_999));
        assert_eq!(windows.numbers.windows_met, 1);
        (0..2_000).for_each(|n| windows.note(&decision(true, 10_000_000 + n * WINDOW)));
        let found = windows.numbers;
        assert_eq!((windows.allowed.len(), found.windows, found.windows_met), (REMEMBERED, 2_003, 1));
    }
}
