use std::sync::Arc;
use std::time::Duration;

use super::cell::stored_as;
use super::columns::{codes, columns, flat_rows, tuples};
use crate::model::redis_lease::{
    Bytes, Expiry, LockValue, RedisLease, RedisLeases, ServerKey, ServerState, Standing, redis_lease_rows,
};
use crate::model::{Text, Timestamp};

codes! {
    Standing, else Unknown; {
        0 Unknown, 1 Held, 2 Split, 3 Minority,
    }
}

redis_lease_rows!(columns);

flat_rows! {
    /// [`LockValue`] with the fields of all its kinds. A string: 0; Redisson's hash: 1, with `bytes` for its mode; anything else: 2.
    FlatValues of FlatValue {
        1 kind: u32,
        2 bytes: Bytes,
        3 whole: bool,
        4 fields: Vec<Bytes>,
        5 counts: Vec<i64>,
        6 has_mode: bool,
        7 other: Option<Text>,
    }
}

tuples! {
    /// Another value, and on how many servers it is.
    FlatOthers of (LockValue, u32) as (value, votes) { 1 value: LockValue, 2 votes: u32, }
}

stored_as! {
    LockValue as FlatValue: flat_value, lock_value;
    // Nanoseconds left; -1 for a key that never expires.
    Expiry as Option<i64>:
        |expiry| Some(match expiry {
            Expiry::After(left) => i64::try_from(left.as_nanos()).unwrap_or(i64::MAX),
            Expiry::Never => -1,
        }),
        |nanos| match nanos.and_then(|nanos| u64::try_from(nanos).ok()) {
            Some(nanos) => Expiry::After(Duration::from_nanos(nanos)),
            None => Expiry::Never,
        };
}

fn flat_value(value: &LockValue) -> FlatValue {
    let empty = FlatValue {
        kind: 0,
        bytes: Arc::default(),
        whole: false,
        fields: Vec::new(),
        counts: Vec::new(),
        has_mode: false,
        other: None,
    };
    match value {
        LockValue::Text { bytes, whole } => FlatValue { bytes: Arc::clone(bytes), whole: *whole, ..empty },
        LockValue::Redisson { holders, mode } => FlatValue {
            kind: 1,
            bytes: mode.clone().unwrap_or_default(),
            fields: holders.iter().map(|(field, _)| Arc::clone(field)).collect(),
            counts: holders.iter().map(|(_, count)| *count).collect(),
            has_mode: mode.is_some(),
            ..empty
        },
        LockValue::Other(kind) => FlatValue { kind: 2, other: Some(Text::clone(kind)), ..empty },
    }
}

fn lock_value(flat: FlatValue) -> LockValue {
    match flat.kind {
        0 => LockValue::Text { bytes: flat.bytes, whole: flat.whole },
        1 => LockValue::Redisson {
            holders: flat.fields.into_iter().zip(flat.counts).collect(),
            mode: flat.has_mode.then_some(flat.bytes),
        },
        _ => LockValue::Other(flat.other.unwrap_or_default()),
    }
}
