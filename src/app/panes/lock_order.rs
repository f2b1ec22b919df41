use std::cmp::Reverse;

use super::row::Row;
use crate::app::context::Context;
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::namespace::WORKERS;

/// The sort key of a row of `pg_locks`, with the index of the row last.
type LockKey = (u128, i32, u32);

/// Held locks with the longest queues first, then the others by locked object; within a lock by holder.
///
/// There are tens of thousands of locks, and few are awaited: all are sorted by object, and the rows of each queue are
/// found among them.
pub(super) fn by_queue(context: &Context<'_>, rows: &mut Vec<Row>) {
    let all = context.snapshot.locks.last_rows();
    let key = |row: &Row| match row {
        Row::At(at) => all.get(*at as usize).map(|lock| lock_key(lock, *at)),
        _ => None,
    };
    let mut keys = Vec::with_capacity(rows.len());
    keys.extend(rows.iter().filter_map(key));
    rows.truncate(keys.len());
    keys.sort_unstable();
    let mut queues: Vec<_> = context.view.graph.queues.iter().collect();
    queues.sort_by_key(|queue| (Reverse(queue.waiters.len()), queue.tag));
    let mut awaited = vec![false; keys.len()];
    // Overwrites the rows: there is one for each key.
    let mut places = rows.iter_mut();
    let mut put = |key: &LockKey| places.next().map_or((), |place| *place = Row::At(key.2));
    for queue in queues {
        let tag = packed(&queue.tag);
        let first = keys.partition_point(|key| key.0 < tag);
        for (key, awaited) in keys.iter().zip(&mut awaited).skip(first).take_while(|(key, _)| key.0 == tag) {
            if !std::mem::replace(awaited, true) {
                put(key);
            }
        }
    }
    keys.iter().zip(awaited).filter(|(_, awaited)| !awaited).for_each(|(key, _)| put(key));
}

fn lock_key(lock: &Lock, at: u32) -> LockKey {
    (packed(&lock.tag), lock.pid.unwrap_or(i32::MIN), at)
}

/// The locked object as one number for fast comparison: the type, the database, and the parts that locks of this type
/// have. The names of workers come last: each worker holds its own, and they are of little interest.
fn packed(tag: &LockTag) -> u128 {
    let of_worker =
        tag.objsubid() == Some(1) && tag.classid().is_some_and(|high| high >> 16 == u32::from(WORKERS));
    let virtualxid = tag.virtualxid().map(|xid| (xid.proc_number.cast_unsigned(), xid.local_xid));
    let upper = tag.relation().or(tag.classid()).or(tag.transactionid()).or(virtualxid.map(|xid| xid.0));
    let lower = tag.page().or(tag.objid()).or(virtualxid.map(|xid| xid.1));
    let last = tag.tuple().or(tag.objsubid());
    u128::from(of_worker && tag.locktype() == LockType::Advisory) << 120
        | u128::from(tag.locktype() as u8) << 112
        | u128::from(tag.database().unwrap_or_default()) << 80
        | u128::from(upper.unwrap_or_default()) << 48
        | u128::from(lower.unwrap_or_default()) << 16
        | u128::from(last.unwrap_or_default())
}
