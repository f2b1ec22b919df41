//! Waits counted by the schema's `observe_lock_waits()`, from any source: rows of `contended_locks`. Waits that locktop
//! itself saw are in [`lock_waits`](super::lock_waits).

use super::Timestamp;
use super::lock::{LockMode, LockTag, LockType};

#[derive(Debug, Clone, PartialEq)]
pub struct CountedWaits {
    /// What is locked, as [`contended`](super::lock_waits::contended) returns it.
    pub tag: LockTag,
    pub waits: u64,
    /// The total duration of the waits, in seconds.
    pub total: f64,
    /// The duration of the longest wait, in seconds.
    pub longest: f64,
    /// The mode that the longest wait requested (`longest_mode`). None if it is not the name of a mode.
    pub longest_mode: Option<LockMode>,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

/// The lock tag of columns in which 0 stands for NULL.
pub fn tag(
    locktype: LockType,
    database: u32,
    relation: u32,
    (classid, objid, objsubid): (u32, u32, u16),
) -> LockTag {
    let none = LockTag::new(locktype);
    match locktype {
        LockType::Relation | LockType::Extend | LockType::Page | LockType::Tuple => {
            none.with_database(database).with_relation(relation)
        }
        LockType::FrozenId => none.with_database(database),
        LockType::Object | LockType::UserLock | LockType::Advisory => {
            none.with_database(database).with_classid(classid).with_objid(objid).with_objsubid(objsubid)
        }
        _ => none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock_waits::contended;
    use crate::sample::{advisory, relation};

    #[test]
    fn a_lock_that_was_counted_is_the_one_that_is_seen() {
        let fields =
            |it: &LockTag| (it.classid().unwrap_or(0), it.objid().unwrap_or(0), it.objsubid().unwrap_or(0));
        let row = relation(5).with_locktype(LockType::Tuple).with_page(0).with_tuple(1);
        let xid = LockTag::new(LockType::TransactionId).with_transactionid(9);
        for seen in [advisory(42), advisory(-1), relation(5), row, xid] {
            let counted = tag(
                seen.locktype(),
                seen.database().unwrap_or(0),
                seen.relation().unwrap_or(0),
                fields(&seen),
            );
            assert_eq!(counted, contended(&seen));
        }
    }
}
