//! Rate limits that refuse all requests at the moment: intended, but worth reporting.

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::rate_limit::{self, LimitRow, LimitState};
use crate::text;

const SINGLY: usize = 2;

pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let full: Vec<LimitRow<'_>> =
        rate_limit::rows(look.snapshot).filter(|row| row.state == LimitState::Full).collect();
    let finding = |row: &LimitRow<'_>, summary: String| {
        let finding = Finding::new("rate_limit", Severity::Info, summary, Subject::Limit(row.id));
        Finding { since: row.limit.window_start, ..finding }
    };
    let key = |row: &LimitRow<'_>| text::fit(&text::one_line_prefix(&row.limit.key, 60), 60).into_owned();
    let most = |row: &LimitRow<'_>| row.limit.max_requests.unwrap_or_default();
    match full.as_slice() {
        few if few.len() <= SINGLY => few
            .iter()
            .map(|row| finding(row, format!("rate limit {} is full: {} in its window", key(row), most(row))))
            .collect(),
        [first, ..] => {
            let number = text::count(full.len() as u64);
            vec![finding(first, format!("{number} rate limits are full, including {}", key(first)))]
        }
        [] => Vec::new(),
    }
}
