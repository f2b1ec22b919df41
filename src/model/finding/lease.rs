use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::lease::{LeaseRow, LeaseState};
use crate::text;

/// A lease with more seconds left than its term plus this was written with another clock.
const SLACK: f64 = 2.0;

/// More expired leases than this have one cause, such as the loss of all owners, and are one finding.
const SINGLY: usize = 3;

/// One finding for each expired lease while they are few, and one for each lease with several owners.
pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let board = &look.leases;
    let expired = || board.rows.iter().filter(|row| row.state == LeaseState::Expired);
    let count = board.counts.of(LeaseState::Expired) as usize;
    let mut findings = if count <= SINGLY {
        expired().map(|row| one(look, row)).collect()
    } else {
        many(look, expired(), count)
    };
    findings.extend(ahead(look));
    findings
}

/// `lease 7 of node1 expired 41s ago and was not released`
fn one(look: &CheckInput<'_>, row: &LeaseRow) -> Finding {
    let (name, owner) = (text::one_line(&row.name), words(row));
    let age = look.age_text(row.expires_at);
    let waiting = match row.waiting {
        0 => String::new(),
        waiting => format!(", {waiting} waiting"),
    };
    let summary = format!("lease {name} of {owner} expired{age} ago and was not released{waiting}");
    new(row, &summary).short(format!("lease {name} of {owner} expired{age} ago{waiting}"))
}

fn many<'a>(look: &CheckInput<'_>, rows: impl Iterator<Item = &'a LeaseRow>, count: usize) -> Vec<Finding> {
    let first = rows.min_by_key(|row| (row.expires_at.is_none(), row.expires_at));
    let finding = |row: &LeaseRow| {
        let (name, owner) = (text::one_line(&row.name), words(row));
        let age = look.age_text(row.expires_at);
        let number = text::count(count as u64);
        let summary =
            format!("{number} leases expired and were not released; the first is {name} of {owner}{age} ago");
        new(row, &summary).short(format!("{number} leases expired, first {name} of {owner}{age} ago"))
    };
    first.map(finding).into_iter().collect()
}

/// `lease 7 of node1 ends in 1h00m, later than its term of 1.0s permits: the clock was set back`, for the one with the most
/// time left.
fn ahead(look: &CheckInput<'_>) -> Option<Finding> {
    let now = look.snapshot.taken_at;
    let left = |row: &LeaseRow| row.expires_at.map_or(0.0, |end| (end - now).as_seconds_f64());
    let is_beyond = |row: &&LeaseRow| {
        row.state == LeaseState::Held && row.term.is_some_and(|term| left(row) > term + SLACK)
    };
    let rows: Vec<_> = look.leases.rows.iter().filter(is_beyond).collect();
    let row = rows.iter().max_by(|one, other| left(one).total_cmp(&left(other)))?;
    let (name, owner) = (text::one_line(&row.name), words(row));
    let (ends, term) = (text::duration(left(row)), text::duration(row.term.unwrap_or_default()));
    let more = match rows.len() {
        1 => String::new(),
        count => format!(" ({} such leases)", text::count(count as u64)),
    };
    let summary = format!(
        "lease {name} of {owner} ends in {ends}, later than its term of {term} permits: the clock was set back{more}"
    );
    let finding = Finding::new("lease_ahead", Severity::Warning, &summary, Subject::Lease(row.id));
    Some(finding.short(format!("lease {name} of {owner} ends in {ends}, its term is {term}{more}")))
}

fn words(row: &LeaseRow) -> String {
    let owner = row.owner.as_deref().unwrap_or("no owner");
    text::fit(&text::one_line_prefix(owner, 40), 40).into_owned()
}

fn new(row: &LeaseRow, summary: &str) -> Finding {
    let finding = Finding::new("expired_lease", Severity::Warning, summary, Subject::Lease(row.id));
    Finding { since: row.expires_at, ..finding }
}
