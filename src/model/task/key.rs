use locktop_base::namespace::{LARGEST_ID, TASKS};

use super::TaskSet;
use crate::model::Text;
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_key::LockKey;
use crate::model::lock_name::LockName;

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

/// The name of the task behind a bigint key of the database that the sets were read from. A key of the namespace is
/// certain if exactly one task has its id; a raw number may belong to any program, so its name is always a guess.
pub fn name_of(sets: &[TaskSet], number: i64) -> Option<LockName> {
    match TaskKey::of(number) {
        TaskKey::Own(id) => {
            let mut owners = sets.iter().filter(|set| set.tables.own_keys && set.place(id).is_some());
            let set = owners.next()?;
            let origin = format!("the key of task {id} in {}", set.tables.schedules);
            Some(named(set, id, owners.next().is_some(), &origin))
        }
        TaskKey::Raw(number) => {
            let running = sets.iter().find_map(|set| Some((set, set.running_with(number)?)));
            if let Some((set, id)) = running {
                let log = set.tables.executions.as_deref().unwrap_or_default();
                return Some(named(set, id, true, &format!("the lock_id of a running row of {log}")));
            }
            let set = sets.iter().find(|set| !set.tables.own_keys && set.place(number).is_some())?;
            let origin = format!("the same number as an id in {}", set.tables.schedules);
            Some(named(set, number, true, &origin))
        }
    }
}

/// Another table that has a task with the same key, if any: the holder may run that task instead.
pub fn also_of<'a>(sets: &'a [TaskSet], set: &TaskSet, key: TaskKey) -> Option<&'a Text> {
    let TaskKey::Own(id) = key else { return None };
    let is = |other: &&TaskSet| {
        other.tables.own_keys && other.tables.table != set.tables.table && other.place(id).is_some()
    };
    sets.iter().find(is).map(|other| &other.tables.schedules)
}

fn named(set: &TaskSet, id: i64, uncertain: bool, origin: &str) -> LockName {
    let name = set.task(id).and_then(|task| task.name.clone());
    let name = name.unwrap_or_else(|| format!("task {id}").into());
    LockName { name, uncertain, origin: origin.into() }
}
