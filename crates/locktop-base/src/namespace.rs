//! Advisory lock keys, and those that carry an id: the namespace in the top 16 bits, the id in the low 48.

/// The key of an advisory lock. The two kinds are separate key spaces: a lock in one never conflicts with a lock in the
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockKey {
    /// The key of `pg_advisory_lock(bigint)` and similar functions.
    Bigint(i64),
    /// The keys of `pg_advisory_lock(int, int)` and similar functions.
    Pair(i32, i32),
}

impl LockKey {
    /// `classid`, `objid` and `objsubid` in `pg_locks`.
    #[must_use]
    pub fn fields(self) -> (u32, u32, u16) {
        match self {
            Self::Bigint(key) => {
                let half = |bits: u64| u32::try_from(bits & 0xFFFF_FFFF).unwrap_or_default();
                (half(key.cast_unsigned() >> 32), half(key.cast_unsigned()), 1)
            }
            Self::Pair(first, second) => (first.cast_unsigned(), second.cast_unsigned(), 2),
        }
    }

    /// The key as shown in `pg_locks`. A bigint key is `classid << 32 | objid` with `objsubid` 1; a pair has `objsubid` 2 and
    /// both halves are signed (`src/backend/utils/adt/lockfuncs.c`, `SET_LOCKTAG_INT64` and `SET_LOCKTAG_INT32`). `None` for
    /// other values of `objsubid`, which extensions use.
    #[must_use]
    pub fn of_fields(classid: u32, objid: u32, objsubid: u16) -> Option<Self> {
        match objsubid {
            1 => Some(Self::Bigint((u64::from(classid) << 32 | u64::from(objid)).cast_signed())),
            2 => Some(Self::Pair(classid.cast_signed(), objid.cast_signed())),
            _ => None,
        }
    }
}

impl std::fmt::Display for LockKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bigint(value) => write!(f, "{value}"),
            Self::Pair(classid, objid) => write!(f, "({classid}, {objid})"),
        }
    }
}

/// Scheduled tasks ("LT"); the id is `scheduled_tasks.id`.
pub const TASKS: u16 = 0x4C54;
/// Sessions that run statements of tasks ("LW").
const STATEMENTS: u16 = 0x4C57;
/// Sessions that run statements of work queue items ("LX").
const ITEM_STATEMENTS: u16 = 0x4C58;
/// Work queue items ("LQ"); the id is `task_queue.id`.
pub const QUEUE: u16 = 0x4C51;
/// Names of workers ("LN"): not an id, but a hash of the schema and the name.
pub const WORKERS: u16 = 0x4C4E;
/// Id generators ("LI"); the id is `id_generator.worker_id`.
pub const GENERATORS: u16 = 0x4C49;

pub const LARGEST_ID: i64 = (1 << 48) - 1;

/// The key of the advisory lock held by the session that runs the statement of this task: `statement_lock_key` of the
/// schema.
#[must_use]
pub const fn statement_number(id: i64) -> i64 {
    (STATEMENTS as i64) << 48 | (id & LARGEST_ID)
}

/// The key of the advisory lock held by the session that runs the statement of this work queue item.
#[must_use]
pub const fn item_statement_number(id: i64) -> i64 {
    (ITEM_STATEMENTS as i64) << 48 | (id & LARGEST_ID)
}

/// The id in a key; `None` if the key is not in this namespace.
#[must_use]
pub const fn id_in(namespace: u16, number: i64) -> Option<i64> {
    if number >> 48 == namespace as i64 { Some(number & LARGEST_ID) } else { None }
}

/// The key of an id; `None` if the id does not fit.
#[must_use]
pub const fn number_of(namespace: u16, id: i64) -> Option<i64> {
    if id >= 0 && id <= LARGEST_ID { Some((namespace as i64) << 48 | id) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_recovered_unchanged_from_its_key() {
        for id in [0, 7, LARGEST_ID] {
            let number = number_of(QUEUE, id).unwrap();
            assert_eq!((id_in(QUEUE, number), id_in(GENERATORS, number)), (Some(id), None));
        }
        for id in [-1, LARGEST_ID + 1, i64::MIN] {
            assert_eq!(number_of(QUEUE, id), None);
        }
        assert_eq!(number_of(QUEUE, 7), Some(5_499_176_619_996_086_279), "lock_key(19537, 7) on the server");
        assert_eq!(id_in(QUEUE, 7), None);
    }
}
