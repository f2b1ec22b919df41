use locktop_base::namespace::{LARGEST_ID, TASKS};

use crate::model::lock::{LockTag, LockType};
use crate::model::lock_key::LockKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskKey {
    /// In locktop's namespace for tasks: no other program is likely to use such a number.
    Own(i64),
    /// Any other number, usually a row id. Any program may use it.
    Raw(i64),
}

impl TaskKey {
    /// Classifies a number stored as `lock_id` or held as a key.
    pub const fn of(number: i64) -> Self {
        if number >> 48 == TASKS as i64 { Self::Own(number & LARGEST_ID) } else { Self::Raw(number) }
    }

    /// The key of a task in locktop's own tables; None if the id does not fit.
    pub const fn own(id: i64) -> Option<Self> {
        if id >= 0 && id <= LARGEST_ID { Some(Self::Own(id)) } else { None }
    }

    /// The argument of `pg_advisory_lock(bigint)`.
    pub const fn number(self) -> i64 {
        match self {
            Self::Own(id) => (TASKS as i64) << 48 | (id & LARGEST_ID),
            Self::Raw(number) => number,
        }
    }

    pub const fn lock_key(self) -> LockKey {
        LockKey::Bigint(self.number())
    }

    pub fn tag(self, datid: u32) -> LockTag {
        let number = self.number().cast_unsigned();
        let half = |bits: u64| u32::try_from(bits & 0xffff_ffff).ok();
        LockTag::new(LockType::Advisory)
            .with_database(datid)
            .with_classid(half(number >> 32))
            .with_objid(half(number))
            .with_objsubid(1)
    }
}
