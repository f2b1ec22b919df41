//! Since when each advisory lock has been seen with its holder: a lower bound of how long it is held.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::model::Timestamp;
use crate::model::lock::{Lock, LockTag, LockType};

/// Holder and lock, and when they were first seen together.
pub type HeldSince = FxHashMap<(i32, LockTag), Timestamp>;

/// The table for `locks`, read at `at`, after `before`, which was made from `locks_before`.
#[must_use]
pub fn updated(
    before: &Arc<HeldSince>,
    locks_before: &[Lock],
    locks: &[Lock],
    at: Timestamp,
) -> Arc<HeldSince> {
    // Most polls change nothing, and the server lists what stays in the same order.
    if std::ptr::eq(locks_before, locks) || held(locks_before).eq(held(locks)) {
        return Arc::clone(before);
    }
    let mut table = HeldSince::with_capacity_and_hasher(before.len(), rustc_hash::FxBuildHasher);
    for key in held(locks) {
        table.insert(key, before.get(&key).copied().unwrap_or(at));
    }
    Arc::new(table)
}

fn held(locks: &[Lock]) -> impl Iterator<Item = (i32, LockTag)> {
    locks
        .iter()
        .filter(|lock| lock.granted && lock.tag.locktype == LockType::Advisory)
        .filter_map(|lock| Some((lock.pid?, lock.tag)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::{LockMode, VirtualTransaction};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(seconds, 0).unwrap()
    }

    fn lock(pid: i32, key: u32, granted: bool) -> Lock {
        Lock {
            tag: LockTag { objid: Some(key), ..LockTag::new(LockType::Advisory) },
            mode: LockMode::Exclusive,
            granted,
            pid: Some(pid),
            virtualtransaction: VirtualTransaction { proc_number: pid, local_xid: 1 },
            wait_start: None,
        }
    }

    #[test]
    fn a_lock_keeps_its_time_for_as_long_as_the_holder_stays() {
        let first = [lock(1, 7, true), lock(2, 7, false)];
        let table = updated(&Arc::default(), &[], &first, at(10));
        assert_eq!(table.len(), 1);
        let same = updated(&table, &first, &first, at(11));
        assert!(Arc::ptr_eq(&table, &same));
        let second = [lock(3, 8, true), lock(1, 7, true)];
        let table = updated(&same, &first, &second, at(12));
        assert_eq!(table.get(&(1, first[0].tag)), Some(&at(10)));
        assert_eq!(table.get(&(3, second[0].tag)), Some(&at(12)));
        let third = [lock(2, 7, true)];
        let table = updated(&table, &second, &third, at(13));
        assert_eq!(table.get(&(2, third[0].tag)), Some(&at(13)));
        assert_eq!(table.len(), 1, "what is gone is forgotten");
    }
}
