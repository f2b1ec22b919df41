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
