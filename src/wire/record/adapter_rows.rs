use super::cell::{Cell, Column};
use super::columns::{columns, lists};
use super::strings::{Decoded, Strings};
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

lists! {
    JobLists of Job;
    WorkerLists of Worker;
    DepthLists of Depth;
    PausedLists of Paused;
    AdapterLeaseLists of AdapterLease;
    AdapterScheduleLists of AdapterSchedule;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Keys {
    #[prost(message, required, tag = 1)]
    is_pair: <Option<bool> as Cell>::Column,
    #[prost(message, required, tag = 2)]
    bits: <i64 as Cell>::Column,
}

impl Cell for Option<LockKey> {
    type Column = Keys;
}

impl Column<Option<LockKey>> for Keys {
    fn push(&mut self, value: &Option<LockKey>, strings: &mut Strings) {
        let (is_pair, bits) = match *value {
            None => (None, 0),
            Some(LockKey::Bigint(key)) => (Some(false), key),
            Some(LockKey::Pair(high, low)) => {
                (Some(true), i64::from(high) << 32 | i64::from(low.cast_unsigned()))
            }
        };
        self.is_pair.push(&is_pair, strings);
        self.bits.push(&bits, strings);
    }

    fn get(&self, at: usize, strings: &Decoded) -> Option<LockKey> {
        let is_pair = Column::<Option<bool>>::get(&self.is_pair, at, strings)?;
        let bits = Column::<i64>::get(&self.bits, at, strings);
        if !is_pair {
            return Some(LockKey::Bigint(bits));
        }
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
        let low = bits as i32;
        Some(LockKey::Pair(i32::try_from(bits >> 32).unwrap_or_default(), low))
    }

    fn rows(&self) -> usize {
        Column::<Option<bool>>::rows(&self.is_pair)
    }
}
