use super::{LeaseId, LeaseRow, LeaseState, ObservedHold};
use crate::model::Timestamp;
use crate::model::redis_lease::{RedisLease, RedisLeases, Standing};

pub const SOURCE: &str = "redis";

/// A row for each lock. Times are those of `leases.read_at`; a lock that has ended since, by the term read then, is
/// omitted: it is not known whether it was renewed.
pub(super) fn rows(leases: &RedisLeases, now: Timestamp) -> impl Iterator<Item = LeaseRow> {
    let age = leases.read_at.map_or(0.0, |read_at| (now - read_at).as_seconds_f64().max(0.0));
    leases.rows.iter().filter(|lease| lease.holder.is_lock()).filter_map(move |lease| {
        let row = row(lease, age, now)?;
        let set = (leases.sets.len() > 1).then(|| small(lease.set + 1));
        Some(LeaseRow { set, ..row })
    })
}

fn small(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// The identity of a lock: its set of servers and the bytes of its key, which need not be text.
pub fn id(lease: &RedisLease) -> LeaseId {
    let (key, set) = (&lease.key, lease.set);
    match std::str::from_utf8(key) {
        Ok(text) => LeaseId::of(&format!("{SOURCE} {set}"), text),
        Err(_) => LeaseId::of(&format!("{SOURCE} {set}, bytes"), &key.escape_ascii().to_string()),
    }
}

fn row(lease: &RedisLease, age: f64, now: Timestamp) -> Option<LeaseRow> {
    let left = lease.expiry.left().map(|left| left.as_secs_f64() - age);
    if left.is_some_and(|left| left <= 0.0) {
        return None;
    }
    let end = |left| chrono::TimeDelta::from_std(std::time::Duration::try_from_secs_f64(left).ok()?).ok();
    let seconds = |millis: i64| Some(chrono::TimeDelta::try_milliseconds(millis)?.as_seconds_f64());
    let votes = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    let state = match lease.standing {
        Standing::Held | Standing::Unknown => LeaseState::Held,
        Standing::Split | Standing::Minority => LeaseState::Free,
    };
    Some(LeaseRow {
        id: id(lease),
        source: SOURCE.into(),
        name: lease.name(),
        owner: Some(lease.holder.shown()),
        acquired_at: None,
        renewed_at: None,
        expires_at: left.and_then(end).and_then(|left| now.checked_add_signed(left)),
        term: None,
        token: None,
        state,
        left,
        owner_alive: None,
        owner_pid: None,
        waiting: 0,
        quorum: (lease.servers > 1).then(|| (votes(lease.votes), votes(lease.servers))),
        set: None,
        is_split: lease.standing == Standing::Split,
        observed: ObservedHold {
            held: lease.observed.and_then(seconds).map(|held| held + age),
            term: lease.longest.and_then(seconds),
            holds: lease.holder.holds(),
        },
    })
}
