//! Waits that the schema's `observe_lock_waits()` has counted, whoever looked: rows of `contended_locks`. What locktop itself saw is in
//! [`lock_waits`](super::lock_waits).

use super::Timestamp;
use super::lock::{LockMode, LockTag, LockType};

/// A lock that was waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedWaits {
    /// What is locked, as [`contended`](super::lock_waits::contended) gives it.
    pub tag: LockTag,
    /// Waits that were seen, each once (`waits`).
    pub waits: u64,
    /// How long all of them have lasted together, in seconds.
    pub total: f64,
    /// How long the longest of them has lasted, in seconds.
    pub longest: f64,
    /// The mode that the longest wait asked for (`longest_mode`); none where no name of a mode stands there.
    pub longest_mode: Option<LockMode>,
    /// When the first of the waits began.
    pub first: Option<Timestamp>,
    /// When the last one was last seen.
    pub last: Option<Timestamp>,
}

/// What is locked, of columns in which 0 stands for NULL.
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
