use super::cell::stored_as;
use super::columns::{columns, tuples};
use crate::model::adapter::{AdapterLease, AdapterSchedule, Depth, Job, Paused, Worker};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};

columns! {
    Jobs of Job {
        1 id: Text,
        2 state: Text,
        3 name: Option<Text>,
        4 queue: Option<Text>,
        5 priority: Option<i64>,
        6 attempt: Option<i64>,
        7 max_attempts: Option<i64>,
        8 due_at: Option<Timestamp>,
        9 started_at: Option<Timestamp>,
        10 finished_at: Option<Timestamp>,
        11 limit: Option<f64>,
        12 worker: Option<Text>,
        13 key: Option<LockKey>,
        14 backend_pid: Option<i32>,
        15 beat_at: Option<Timestamp>,
        16 lease_until: Option<Timestamp>,
        17 blocked_by: Option<Text>,
        18 error: Option<Text>,
        19 note: Option<Text>,
        20 concurrency_key: Option<Text>,
        21 stuck: Option<Text>,
    }
    Workers of Worker {
        1 id: Text,
        2 name: Option<Text>,
        3 host: Option<Text>,
        4 kind: Option<Text>,
        5 queues: Option<Text>,
        6 pid: Option<i64>,
        7 capacity: Option<i64>,
        8 busy: Option<i64>,
        9 started_at: Option<Timestamp>,
        10 beat_at: Option<Timestamp>,
        11 stopped_at: Option<Timestamp>,
        12 beat_limit: Option<f64>,
        13 key: Option<LockKey>,
        14 backend_pid: Option<i32>,
        15 sessions: Option<i64>,
    }
    Depths of Depth {
        1 queue: Option<Text>,
        2 state: Text,
        3 number: i64,
        4 is_estimate: bool,
        5 oldest_at: Option<Timestamp>,
    }
    /// Queues that are paused.
    PausedRows of Paused {
        1 queue: Text,
        2 since: Option<Timestamp>,
    }
    AdapterLeases of AdapterLease {
        1 id: Text,
        2 owner: Option<Text>,
        3 token: Option<Text>,
        4 note: Option<Text>,
        5 acquired_at: Option<Timestamp>,
        6 expires_at: Option<Timestamp>,
        7 is_held: Option<bool>,
        8 key: Option<LockKey>,
    }
    AdapterSchedules of AdapterSchedule {
        1 id: Text,
        2 name: Option<Text>,
        3 schedule: Option<Text>,
        4 queue: Option<Text>,
        5 next_run_at: Option<Timestamp>,
        6 last_run_at: Option<Timestamp>,
        7 is_enabled: Option<bool>,
    }
}

tuples! {
    /// Whether a key is a pair of numbers, and its 64 bits.
    Keys of (Option<bool>, i64) as (is_pair, bits) {
        1 is_pair: Option<bool>,
        2 bits: i64,
    }
}

stored_as! {
    Option<LockKey> as (Option<bool>, i64):
        |key| key.map(key_bits).map_or((None, 0), |(is_pair, bits)| (Some(is_pair), bits)),
        |(is_pair, bits)| Some(key_of(is_pair?, bits));
}

/// Whether it is a pair of numbers, and its 64 bits.
pub(super) fn key_bits(key: LockKey) -> (bool, i64) {
    match key {
        LockKey::Bigint(key) => (false, key),
        LockKey::Pair(high, low) => (true, i64::from(high) << 32 | i64::from(low.cast_unsigned())),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "two halves of 32 bits")]
pub(super) fn key_of(is_pair: bool, bits: i64) -> LockKey {
    if is_pair { LockKey::Pair((bits >> 32) as i32, bits as i32) } else { LockKey::Bigint(bits) }
}
