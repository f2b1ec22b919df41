//! Requests that never wait and so are not visible as waits: those that locktop's own functions refused, as the sequences of
//! table `refusals` count them, and those that sessions have made a moment ago.

use std::collections::BTreeMap;

use crate::model::section::Observed;
use crate::model::statement::token::tokens;
use crate::model::statement::{Act, Nowait, beginning, first};
pub use crate::model::table_rows::Refusals;
use crate::model::view::SnapshotView;
use crate::model::{QueryText, Timestamp};
use crate::text;

use crate::order::SortExt;

/// Seconds that the line of a quiet server looks back.
pub const WINDOW: f64 = 60.0;

impl Refusals {
    /// The sum of two tables; unknown if one of them is.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one.zip(other).map(|(one, other)| one.saturating_add(other)))
    }

    /// Whether a counter is known.
    pub fn is_known(&self) -> bool {
        self.counters().iter().any(|(_, count)| count.is_some())
    }

    fn with(&self, other: &Self, of: impl Fn(Option<i64>, Option<i64>) -> Option<i64>) -> Self {
        Self {
            at: self.at,
            rate_limit: of(self.rate_limit, other.rate_limit),
            transfer: of(self.transfer, other.transfer),
            lease: of(self.lease, other.lease),
            task: of(self.task, other.task),
        }
    }

    fn counters(&self) -> [(&'static str, Option<i64>); 4] {
        [
            ("rate limit", self.rate_limit),
            ("transfer", self.transfer),
            ("lease", self.lease),
            ("task", self.task),
        ]
    }
}

/// `refused in 1m: rate limit 5,647, transfer 82`, from the samples of the last minute, oldest first. `None` if nothing was refused, or
/// if that is not known. A counter that started again counts from 0.
pub fn line(samples: &[Refusals]) -> Option<String> {
    let (first, last) = (samples.first()?, samples.last()?);
    let since = last.with(first, |now, then| {
        now.zip(then).map(|(now, then)| if now < then { now } else { now.saturating_sub(then) })
    });
    let mut parts: Vec<_> = since
        .counters()
        .into_iter()
        .filter_map(|(name, count)| Some((name, u64::try_from(count?).ok().filter(|count| *count > 0)?)))
        .collect();
    parts.order_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts: Vec<String> =
        parts.iter().map(|(name, count)| format!("{name} {}", text::count(*count))).collect();
    (!parts.is_empty()).then(|| format!("refused in 1m: {}", parts.join(", ")))
}

/// A statement counts if it began at most this many seconds before the snapshot.
const RECENT: f64 = 60.0;

/// Bytes of a statement that are read: a function call is at its beginning.
const READ: usize = 1000;

/// Functions of locktop's schema, and of the published tables, that refuse or retry instead of waiting.
const FUNCTIONS: [&str; 8] = [
    "check_rate_limit",
    "take_rate_limit",
    "transfer_at_versions",
    "try_transfer",
    "transfer_optimistic",
    "try_acquire_task_lock",
    "try_acquire_multiple_tasks",
    "lease_acquire",
];

/// The requests of the last minute that never wait, by function or clause: `check_rate_limit ≥200, pg_try_advisory_lock
/// ≥14: requests in 1m that never wait`. Lower bounds: the server keeps only the latest statement of each session.
/// None if there is no such request, or if the sessions could not be read.
pub fn seen(view: SnapshotView<'_>) -> Option<String> {
    let Observed::Read(backends) = view.snapshot.backends.observed() else { return None };
    let is_recent = |began: Timestamp| (view.snapshot.taken_at - began).as_seconds_f64() <= RECENT;
    let mut counts = BTreeMap::<String, u64>::new();
    for backend in backends.iter().filter(|row| row.query_start.is_some_and(is_recent)) {
        if let Some(what) = backend.query.as_ref().and_then(asks) {
            *counts.entry(what).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.order_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts: Vec<String> =
        counts.iter().take(3).map(|(what, count)| format!("{what} ≥{}", text::count(*count))).collect();
    (!parts.is_empty()).then(|| format!("{}: requests in 1m that never wait", parts.join(", ")))
}

fn asks(query: &QueryText) -> Option<String> {
    let text = beginning(query.unredacted(), READ);
    // Cheap filter: few statements contain such a word.
    let lower = text.to_ascii_lowercase();
    if !["pg_try_", "nowait"].iter().chain(&FUNCTIONS).any(|word| lower.contains(word)) {
        return None;
    }
    let tokens = tokens(text);
    // These only describe a statement, or keep one for later.
    if tokens.first()?.is_any(&["EXPLAIN", "PREPARE", "DECLARE", "CREATE"]) {
        return None;
    }
    if let Some(statement) = first(text, READ) {
        if let Some(call) = statement.calls.iter().find(|call| call.act == Act::Try) {
            return Some(call.function.clone());
        }
        if matches!(statement.nowait, Nowait::Fails | Nowait::Rows) {
            return Some("NOWAIT".to_owned());
        }
    }
    let calls = tokens.windows(2).filter(|pair| matches!(pair, [_, next] if next.sign('(')));
    let mut names = calls.filter_map(|pair| pair.first()?.name());
    names.find(|name| FUNCTIONS.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn at(second: i64, rate_limit: i64, transfer: Option<i64>) -> Refusals {
        let at = Timestamp::from_timestamp(second, 0);
        Refusals { at, rate_limit: Some(rate_limit), transfer, lease: Some(3), task: None }
    }

    #[test]
    fn a_sum_with_an_unknown_counter_is_unknown() {
        let sum = at(0, 1, None).plus(&at(0, 2, Some(5)));
        assert_eq!((sum.rate_limit, sum.transfer, sum.lease, sum.task), (Some(3), None, Some(6), None));
    }

    #[test]
    fn the_line_shows_the_refusals_in_the_window() {
        assert_eq!(line(&[]), None);
        assert_eq!(line(&[at(0, 5_000, Some(1))]), None, "the first snapshot has no rise");
        let two = [at(0, 5_000, Some(1)), at(50, 10_647, Some(83))];
        assert_eq!(line(&two).unwrap(), "refused in 1m: rate limit 5,647, transfer 82");
        assert_eq!(line(&[at(0, 5, None), at(50, 7, Some(9))]).unwrap(), "refused in 1m: rate limit 2");
        assert_eq!(line(&[at(0, 5_000, None), at(50, 7, None)]).unwrap(), "refused in 1m: rate limit 7");
        assert_eq!(line(&[at(0, 5, Some(1)), at(50, 5, Some(1))]), None);
    }

    #[test]
    fn a_call_or_a_clause_is_recognized_and_text_is_not() {
        let cases = [
            ("SELECT pg_try_advisory_lock(42)", Some("pg_try_advisory_lock")),
            ("select PG_TRY_ADVISORY_XACT_LOCK_SHARED ($1, $2)", Some("pg_try_advisory_xact_lock_shared")),
            ("SELECT locktop.check_rate_limit('a', 5, 60)", Some("check_rate_limit")),
            ("SELECT 1 FROM accounts WHERE id = 1 FOR UPDATE NOWAIT", Some("NOWAIT")),
            ("SELECT pg_advisory_lock(42)", None),
            ("SELECT 'pg_try_advisory_lock(42)' -- NOWAIT", None),
            ("SELECT \"nowait\", pg_try_advisory_lock FROM t", None),
            ("SELECT nowait FROM t WHERE nowait = 1", None),
            ("LOCK TABLE accounts IN EXCLUSIVE MODE NOWAIT", Some("NOWAIT")),
            ("SELECT 1 FROM accounts FOR UPDATE SKIP LOCKED", None),
            ("EXPLAIN SELECT pg_try_advisory_lock(42)", None),
            ("PREPARE p AS SELECT locktop.check_rate_limit('a', 5, 60)", None),
        ];
        for (statement, expected) in cases {
            assert_eq!(asks(&statement.into()).as_deref(), expected, "{statement}");
        }
    }
}
