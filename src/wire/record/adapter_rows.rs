use super::cell::stored_as;
use super::columns::{columns, tuples};
use crate::model::adapter::{AdapterLease, AdapterSchedule, Depth, Job, Paused, Worker, part_rows};
use crate::model::lock_key::LockKey;
use crate::model::{Text, Timestamp};

part_rows!(columns);

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
