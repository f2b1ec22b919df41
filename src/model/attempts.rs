//! Lock requests that never wait and so are not visible as waits.

use std::collections::BTreeMap;

use super::section::Observed;
use super::statement::token::tokens;
use super::statement::{Act, Nowait, beginning, first};
use super::view::SnapshotView;
use super::{QueryText, Timestamp};
use crate::order::Order;
use crate::text;

/// A statement counts if it began at most this many seconds before the snapshot.
const WINDOW: f64 = 60.0;

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
    let is_recent = |began: Timestamp| (view.snapshot.taken_at - began).as_seconds_f64() <= WINDOW;
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
    use super::asks;

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
