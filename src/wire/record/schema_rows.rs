//! Workers, counted waits and refusals of locktop's schema.

use super::columns::columns;
use crate::model::counted_waits::CountedWaits;
use crate::model::lock::{LockMode, LockTag};
use crate::model::refusals::Refusals;
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
    RefusalRows of Refusals {
        1 at: Option<Timestamp>,
        2 rate_limit: Option<i64>,
        3 transfer: Option<i64>,
        4 lease: Option<i64>,
        5 task: Option<i64>,
    }
}
