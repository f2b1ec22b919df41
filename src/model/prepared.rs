use rustc_hash::FxHashMap;

use super::lock::{LockType, Prepared, VirtualTransaction};
use super::snapshot::Snapshot;

#[derive(Debug, Clone, Default)]
pub struct PreparedIndex {
    by_virtual: FxHashMap<VirtualTransaction, usize>,
}

impl PreparedIndex {
    /// A prepared transaction holds the lock on its transaction id without a process; that row links the `virtualtransaction`
    /// of its locks to its row in `pg_prepared_xacts`.
    pub fn of(snapshot: &Snapshot) -> Self {
        if snapshot.prepared.last_rows().is_empty() {
            return Self::default();
        }
        let rows = snapshot.prepared.last_rows().iter().enumerate();
        let by_xid: FxHashMap<u32, usize> = rows.map(|(at, row)| (row.transaction, at)).collect();
        let locks = snapshot.locks.last_rows().iter();
        let own = locks.filter(|lock| lock.pid.is_none() && lock.tag.locktype() == LockType::TransactionId);
        let pair = |lock: &super::lock::Lock| {
            Some((lock.virtualtransaction, *by_xid.get(&lock.tag.transactionid()?)?))
        };
        Self { by_virtual: own.filter_map(pair).collect() }
    }

    pub fn get<'a>(&self, snapshot: &'a Snapshot, xact: VirtualTransaction) -> Option<&'a Prepared> {
        snapshot.prepared.last_rows().get(*self.by_virtual.get(&xact)?)
    }
}
