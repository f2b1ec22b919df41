//! Names of prepared transactions.

use rustc_hash::FxHashMap;

use crate::model::lock::{LockType, Prepared, VirtualTransaction};
use crate::model::snapshot::Snapshot;
use crate::model::wait_graph::Party;

/// The prepared transactions of a snapshot by what identifies them in `pg_locks`.
#[derive(Debug, Clone, Default)]
pub struct Gids<'a> {
    by_virtual: FxHashMap<VirtualTransaction, &'a Prepared>,
}

impl<'a> Gids<'a> {
    /// A prepared transaction holds its transaction id without a process; that row leads from the
    /// `virtualtransaction` of its locks to its row in `pg_prepared_xacts`.
    #[must_use]
    pub fn of(snapshot: &'a Snapshot) -> Self {
        let by_xid: FxHashMap<u32, &Prepared> =
            snapshot.prepared.rows.iter().map(|row| (row.transaction, row)).collect();
        if by_xid.is_empty() {
            return Self::default();
        }
        let by_virtual = snapshot
            .locks
            .rows
            .iter()
            .filter(|lock| lock.pid.is_none() && lock.tag.locktype == LockType::TransactionId)
            .filter_map(|lock| Some((lock.virtualtransaction, *by_xid.get(&lock.tag.transactionid?)?)))
            .collect();
        Self { by_virtual }
    }

    /// The prepared transaction that `party` is.
    #[must_use]
    pub fn prepared(&self, party: Party) -> Option<&'a Prepared> {
        match party {
            Party::Backend(_) => None,
            Party::Prepared(virtualtransaction) => self.by_virtual.get(&virtualtransaction).copied(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn gid(&self, party: Party) -> Option<&'a str> {
        self.prepared(party).map(|row| &*row.gid)
    }
}
