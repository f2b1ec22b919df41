//! Requests for a lock that are answered at once and so are never seen to wait.

use std::collections::BTreeMap;

use super::observed::Observed;
use super::statement::token::tokens;
use super::view::SnapshotView;
use super::{QueryText, Timestamp};
use crate::text;

/// Seconds before a snapshot in which a statement has begun that is counted.
const WINDOW: f64 = 60.0;

/// Bytes of a statement that are read: a call of a function stands at its beginning.
const READ: usize = 1000;

/// Functions of locktop's schema, and of the published tables, that refuse or try again instead of waiting.
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

/// What the latest statement of each session asks for without waiting, if it began in the last minute: `at least 216 requests that do not
/// wait in the last minute: check_rate_limit 200, pg_try_advisory_lock 14, NOWAIT 2`. Each session counts once, as the server keeps its
/// latest statement only. None if there is none, or if the sessions could not be read.
pub fn seen(view: SnapshotView<'_>) -> Option<String> {
    let Observed::Read(backends) = view.snapshot.backends.observed() else { return None };
    let is_recent = |began: Timestamp| (view.snapshot.taken_at - began).as_seconds_f64() <= WINDOW;
    let mut counts = BTreeMap::<String, u64>::new();
    for backend in backends.iter().filter(|row| row.query_start.is_some_and(is_recent)) {
        if let Some(what) = backend.query.as_ref().and_then(asks) {
            *counts.entry(what).or_default() += 1;
        }
    }
    let all: u64 = counts.values().sum();
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts: Vec<String> =
        counts.iter().take(3).map(|(what, count)| format!("{what} {}", text::count(*count))).collect();
    let noun = if all == 1 { "request that does not wait" } else { "requests that do not wait" };
    let parts = parts.join(", ");
    (all > 0).then(|| format!("at least {} {noun} in the last minute: {parts}", text::count(all)))
}

/// The function or clause with which it asks; none if it waits, or asks for nothing.
fn asks(query: &QueryText) -> Option<String> {
    let text = query.unredacted();
    let end = (0..=text.len().min(READ)).rev().find(|end| text.is_char_boundary(*end))?;
    let tokens = tokens(text.get(..end)?);
    tokens.iter().zip(tokens.iter().skip(1).map(Some).chain([None])).find_map(|(token, next)| {
        let name = token.name()?;
        let is_call = next.is_some_and(|next| next.sign('('));
        match name.as_str() {
            "nowait" if token.is("nowait") => Some("NOWAIT".to_owned()),
            name if is_call && (name.starts_with("pg_try_advisory_") || FUNCTIONS.contains(&name)) => {
                Some(name.to_owned())
            }
            _ => None,
        }
    })
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
        ];
        for (statement, expected) in cases {
            assert_eq!(asks(&statement.into()).as_deref(), expected, "{statement}");
        }
    }
}
