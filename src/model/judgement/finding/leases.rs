//! Leases, locks in Redis, rate limits and id generators.

use super::blockers::wait_words;
use super::check_input::CheckInput;
use super::{Finding, SINGLE, Severity, Subject, listed, short};
use crate::model::id_generator;
use crate::model::lease::{LeaseRow, LeaseState, redis_id};
use crate::model::rate_limit::{self, LimitRow, LimitState};
use crate::model::redis_lease::{RedisLease, RedisLeases, Standing};
use crate::text;

/// A lease with more seconds left than its term plus this was written with another clock.
const SLACK: f64 = 2.0;

/// Columns for the name of an owner, and of a lock in Redis.
const NAME: usize = 40;

/// One finding for each expired lease while they are few, and one for each lease with several owners.
pub(super) fn leases(input: &CheckInput<'_>) -> Vec<Finding> {
    let expired = input.leases.rows.iter().filter(|row| row.state == LeaseState::Expired);
    let expired: Vec<&LeaseRow> = expired.collect();
    let mut findings: Vec<Finding> = match expired.len() {
        ..=SINGLE => expired.iter().map(|row| one_expired(input, row)).collect(),
        _ => many_expired(input, &expired).into_iter().collect(),
    };
    findings.extend(lease_ahead(input));
    findings.extend(queues(input));
    findings
}

/// `lease 7 of node1 expired 41s ago and was not released`
fn one_expired(input: &CheckInput<'_>, row: &LeaseRow) -> Finding {
    let (name, owner) = (text::one_line(&row.name), owner_words(row));
    let age = input.age_text(row.expires_at);
    let waiting = match row.waiting {
        0 => String::new(),
        waiting => format!(", {waiting} waiting"),
    };
    let summary = format!("lease {name} of {owner} expired{age} ago and was not released{waiting}");
    expired_lease(row, &summary).short(format!("lease {name} of {owner} expired{age} ago{waiting}"))
}

fn many_expired(input: &CheckInput<'_>, rows: &[&LeaseRow]) -> Option<Finding> {
    let row = rows.iter().min_by_key(|row| (row.expires_at.is_none(), row.expires_at))?;
    let (name, owner) = (text::one_line(&row.name), owner_words(row));
    let (number, age) = (text::count(rows.len() as u64), input.age_text(row.expires_at));
    let summary =
        format!("{number} leases expired and were not released; the first is {name} of {owner}{age} ago");
    let short = format!("{number} leases expired, first {name} of {owner}{age} ago");
    Some(expired_lease(row, &summary).short(short))
}

/// `lease report is held by node1 for 1m12s, 3 sessions wait for it`
fn queues(input: &CheckInput<'_>) -> Vec<Finding> {
    let is_awaited = |row: &&LeaseRow| row.state == LeaseState::Held && row.waiting > 0;
    listed("lease_queue", input.leases.rows.iter().filter(is_awaited), |row| {
        let (name, owner) = (text::one_line(&row.name), owner_words(row));
        let age =
            row.acquired_at.map(|_| format!(" for{}", input.age_text(row.acquired_at))).unwrap_or_default();
        let head = format!("lease {name} is held by {owner}{age}, {}", wait_words(row.waiting));
        let finding =
            Finding::new("lease_queue", Severity::Info, format!("{head} for it"), Subject::Lease(row.id));
        Finding { since: row.acquired_at, ..finding.short(head) }
    })
}

/// `lease 7 of node1 ends in 1h00m, later than its term of 1.0s permits: the clock was set back`, for the one with the most
/// time left.
fn lease_ahead(input: &CheckInput<'_>) -> Option<Finding> {
    let now = input.snapshot.taken_at;
    let left = |row: &LeaseRow| row.expires_at.map_or(0.0, |end| (end - now).as_seconds_f64());
    let is_beyond = |row: &&LeaseRow| {
        row.state == LeaseState::Held && row.term.is_some_and(|term| left(row) > term + SLACK)
    };
    let rows: Vec<_> = input.leases.rows.iter().filter(is_beyond).collect();
    let row = rows.iter().max_by(|one, other| left(one).total_cmp(&left(other)))?;
    let (name, owner) = (text::one_line(&row.name), owner_words(row));
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

fn owner_words(row: &LeaseRow) -> String {
    short(row.owner.as_deref().unwrap_or("no owner"), NAME)
}

fn expired_lease(row: &LeaseRow, summary: &str) -> Finding {
    let finding = Finding::new("expired_lease", Severity::Warning, summary, Subject::Lease(row.id));
    Finding { since: row.expires_at, ..finding }
}

/// Locks in Redis that never expire, or that no owner holds on a majority; and servers that do not answer.
pub(super) fn redis_locks(input: &CheckInput<'_>) -> Vec<Finding> {
    let leases = &input.snapshot.sources.redis;
    let leaks = leases.rows.iter().filter(|row| row.leaks()).collect();
    let split = leases.rows.iter().filter(|row| row.standing == Standing::Split).collect();
    let mut findings = several(leaks, "redis_no_expiry", "never expire", |row| {
        let owner = short(&row.holder.shown(), NAME);
        let name = short(&row.name(), NAME);
        format!("redis lock {name} of {owner} never expires: it remains if its holder dies")
    });
    findings.extend(several(split, "redis_split", "are split between owners", |row| {
        format!(
            "redis lock {} is split: no owner holds it on {} of {} servers",
            short(&row.name(), NAME),
            locktop_locks::quorum(row.servers),
            row.servers
        )
    }));
    findings.extend(down(leases));
    findings
}

fn several(
    rows: Vec<&RedisLease>,
    check: &'static str,
    do_what: &str,
    tell: impl Fn(&RedisLease) -> String,
) -> Vec<Finding> {
    let new = |row: &RedisLease, summary: String| {
        Finding::new(check, Severity::Warning, summary, Subject::Lease(redis_id(row)))
    };
    match rows.first() {
        Some(first) if rows.len() > SINGLE => {
            let (number, name) = (text::count(rows.len() as u64), short(&first.name(), NAME));
            let summary = format!("{number} redis locks {do_what}; the first is {name}");
            vec![new(first, summary)]
        }
        _ => rows.into_iter().map(|row| new(row, tell(row))).collect(),
    }
}

/// `2 of 5 Redis servers down: …`
fn down(leases: &RedisLeases) -> Option<Finding> {
    let error = leases.servers.iter().find_map(|server| server.error.as_deref())?;
    let head = format!("{} of {} Redis servers down", leases.down(), leases.servers.len());
    let summary = format!("{head}: {}", text::one_line(error));
    Some(Finding::new("redis_down", Severity::Warning, summary, Subject::Server).short(head))
}

const SINGLE_LIMITS: usize = 2;

/// Rate limits that refuse all requests at the moment: intended, but worth reporting.
pub(super) fn full_limits(input: &CheckInput<'_>) -> Vec<Finding> {
    let full: Vec<LimitRow<'_>> =
        rate_limit::rows(input.snapshot).filter(|row| row.state == LimitState::Full).collect();
    let finding = |row: &LimitRow<'_>, summary: String| {
        let finding = Finding::new("rate_limit", Severity::Info, summary, Subject::Limit(row.id));
        Finding { since: row.limit.window_start, ..finding }
    };
    let key = |row: &LimitRow<'_>| short(&row.limit.key, 60);
    let most = |row: &LimitRow<'_>| row.limit.max_requests.unwrap_or_default();
    match full.as_slice() {
        few if few.len() <= SINGLE_LIMITS => few
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

/// Id generators that are ahead of the server's clock: the clock was set back, or the table is from a server whose clock is
/// ahead.
///
/// One finding for each generator that is ahead by more than `[thresholds] id_ahead`.
pub(super) fn generators_ahead(input: &CheckInput<'_>) -> Vec<Finding> {
    let limit = input.thresholds.id_ahead;
    let ahead = id_generator::rows(input.snapshot)
        .filter_map(|row| Some((row, row.ahead.filter(|seconds| *seconds > limit)?)));
    listed("id_ahead", ahead, |(row, seconds)| {
        let (worker, by) = (row.id.worker, text::duration(seconds));
        let source = text::one_line(row.source);
        let summary = format!(
            "id generator {worker} in {source} is {by} ahead of the server's clock: its ids wait for the clock, or repeat"
        );
        Finding::new("id_ahead", Severity::Warning, summary, Subject::Generator(row.id))
            .short(format!("id generator {worker} is {by} ahead of the clock"))
    })
}
