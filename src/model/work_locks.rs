//! The locks of a snapshot that show which sessions work on tasks and queue items.

use rustc_hash::{FxHashMap, FxHashSet};

use super::lock::{LockMode, LockType};
use super::lock_key::LockKey;
use super::snapshot::Snapshot;
use super::table_rows::Item;

#[derive(Debug, Default)]
pub struct WorkLocks {
    pub is_known: bool,
    /// The locks and the sessions were read, on a primary.
    pub shows_sessions: bool,
    pub datid: u32,
    /// [`Snapshot::key_holders`].
    pub holders: FxHashMap<LockKey, Option<i32>>,
    /// Processes by the transaction ID of their open transaction.
    transactions: FxHashMap<u32, i32>,
    /// By process and table (execution logs and work queues): whether its transaction locked rows, and whether it changed
    /// rows.
    tables: FxHashMap<(i32, u32), (bool, bool)>,
}

impl WorkLocks {
    pub fn of(snapshot: &Snapshot) -> Self {
        let server = snapshot.server();
        let is_known = snapshot.locks.is_known();
        let mut locks = Self {
            is_known,
            shows_sessions: is_known
                && snapshot.backends.is_known()
                && server.is_some_and(|server| !server.in_recovery),
            datid: server.map_or(0, |server| server.datid),
            holders: snapshot.key_holders(),
            ..Self::default()
        };
        let logs = snapshot.task_sets.iter().filter_map(|set| set.tables.log);
        let queues = snapshot.systems.items.iter().map(|table| table.source.table);
        let tables: FxHashSet<u32> = logs.chain(queues).collect();
        for lock in snapshot.locks.last_rows().iter().filter(|lock| lock.granted) {
            let Some(pid) = lock.pid else { continue };
            match (lock.tag.locktype(), lock.tag.transactionid(), lock.tag.relation()) {
                (LockType::TransactionId, Some(xid), _) if lock.mode == LockMode::Exclusive => {
                    locks.transactions.insert(xid, pid);
                }
                (LockType::Relation, _, Some(table))
                    if tables.contains(&table) && lock.tag.database() == Some(locks.datid) =>
                {
                    let (locked, changed) = locks.tables.entry((pid, table)).or_default();
                    *locked |= lock.mode == LockMode::RowShare;
                    *changed |= lock.mode == LockMode::RowExclusive;
                }
                _ => {}
            }
        }
        locks
    }

    /// Whether the open transaction of a process has changed rows of a log or a work queue.
    pub fn writes(&self, pid: i32, table: u32) -> bool {
        self.tables.get(&(pid, table)).is_some_and(|(_, changed)| *changed)
    }

    /// The process whose open transaction has locked the row of an item, and whether it locked and then changed rows of that
    /// table, as a worker does.
    pub fn locker(&self, table: u32, item: &Item) -> Option<(i32, bool)> {
        let pid = *self.transactions.get(&item.locker?).filter(|_| self.shows_sessions)?;
        Some((pid, self.tables.get(&(pid, table)) == Some(&(true, true))))
    }

    /// False if that is not known.
    pub fn is_in_transaction(&self, snapshot: &Snapshot, pid: i32) -> bool {
        self.shows_sessions && snapshot.backend(pid).is_some_and(|backend| backend.xact_start.is_some())
    }
}
