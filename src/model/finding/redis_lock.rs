//! Locks in Redis that never expire, or that no owner holds on a majority; and servers that do not answer.

use super::check_input::CheckInput;
use super::{Finding, Severity, Subject};
use crate::model::lease::redis_id;
use crate::model::redis_lease::{RedisLease, RedisLeases, Standing};
use crate::text;

const SINGLY: usize = 3;

const NAME: usize = 40;

pub(super) fn check(look: &CheckInput<'_>) -> Vec<Finding> {
    let leases = &look.snapshot.systems.redis;
    let leaks = leases.rows.iter().filter(|row| row.leaks()).collect();
    let split = leases.rows.iter().filter(|row| row.standing == Standing::Split).collect();
    let mut findings = several(leaks, "redis_no_expiry", "never expire", |row| {
        let owner = shown(&row.holder.shown());
        format!("redis lock {} of {owner} never expires: it remains if its holder dies", shown(&row.name()))
    });
    findings.extend(several(split, "redis_split", "are split between owners", |row| {
        format!(
            "redis lock {} is split: no owner holds it on {} of {} servers",
            shown(&row.name()),
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
        Some(first) if rows.len() > SINGLY => {
            let number = text::count(rows.len() as u64);
            let summary = format!("{number} redis locks {do_what}; the first is {}", shown(&first.name()));
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

fn shown(name: &str) -> String {
    text::fit(&text::one_line_prefix(name, NAME), NAME).into_owned()
}
