//! Extensions that take advisory locks outside the two key spaces of the SQL functions.

use super::LockName;
use crate::model::lock::{LockTag, LockType};

/// The fourth field of the locks of `TimescaleDB`'s jobs (its `src/utils.h`): the first two are the database and the job.
const TIMESCALE_JOB: u16 = 29_749;

/// The locks of `TimescaleDB` and Citus, by `objsubid` (`AdvisoryLocktagClass` in
/// `src/include/distributed/resource_lock.h`). Most are `(classid << 32) | objid`; if both halves have a meaning they are
/// shown separately.
pub(super) fn resolve(tag: &LockTag) -> Option<LockName> {
    if tag.locktype() != LockType::Advisory {
        return None;
    }
    let (class, high, low) = (tag.objsubid()?, tag.classid()?, tag.objid()?);
    let id = u64::from(high) << 32 | u64::from(low);
    let name = match class {
        4 => format!("Citus metadata of shard {id}"),
        5 => format!("Citus shard {id}"),
        6 => format!("Citus job {id}"),
        7 => format!("Citus rebalance of colocation group {id}"),
        8 => format!("Citus metadata of shards {high} in colocation group {low}"),
        9 => format!("Citus {}", operation(low)),
        10 => format!("Citus cleanup {id}"),
        12 => format!("Citus logical replication {id}"),
        13 => format!("Citus placement of colocation group {id}"),
        14 => format!("Citus background task {id}"),
        15 => format!("Citus DDL {id}"),
        TIMESCALE_JOB if low == 0 => {
            let origin = "an advisory lock of class 29749, known only from TimescaleDB";
            return Some(LockName::new(format!("TimescaleDB job {high}"), false, origin));
        }
        _ if class > 3 => {
            let origin = "an extension took it: SQL functions use the classes 1 and 2";
            return Some(LockName::new(format!("extension lock of class {class}"), false, origin));
        }
        _ => return None,
    };
    let origin = format!("an advisory lock of class {class}, known only from Citus");
    Some(LockName::new(name, false, origin))
}

/// The operation of a `CitusOperations` lock, by its number in the same file.
fn operation(number: u32) -> String {
    match number {
        0 => "transaction recovery".to_owned(),
        1 => "split without blocking".to_owned(),
        2 => "create_distributed_table_concurrently".to_owned(),
        3 => "creation of the default colocation group".to_owned(),
        4 => "background task monitor".to_owned(),
        _ => format!("operation {number}"),
    }
}
