//! What locktop's schema says of its workers, and of waits that were counted.

use super::columns::{columns, lists};
use crate::model::counted_waits::CountedWaits;
use crate::model::lock::{LockMode, LockTag};
use crate::model::task_worker::TaskWorker;
use crate::model::{Text, Timestamp};

columns! {
    TaskWorkers of TaskWorker {
        1 pid: i32,
        2 start: Option<Timestamp>,
        3 name: Option<Text>,
        4 takes_tasks: bool,
        5 takes_items: bool,
        6 types: Option<Text>,
        7 announced_at: Option<Timestamp>,
    }
    CountedLocks of CountedWaits {
        1 tag: LockTag,
        2 waits: u64,
        3 total: f64,
        4 longest: f64,
        5 longest_mode: Option<LockMode>,
        6 first: Option<Timestamp>,
        7 last: Option<Timestamp>,
    }
}

lists! {
    TaskWorkerLists of TaskWorker;
    CountedLockLists of CountedWaits;
}
