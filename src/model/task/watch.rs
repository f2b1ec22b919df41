//! What was seen before, and what is held now.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockType};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::{Server, Snapshot};

/// What was seen before. It counts only for one connection to one run of one server in one role: after a reconnect, a
/// restart and a promotion everything is counted anew.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    pub(crate) epoch: Option<Epoch>,
    /// Executions, by set and id, whose key was free at every look since.
    pub(crate) free: FxHashMap<(u32, i64), Timestamp>,
    /// Who held the key of an execution, by set and id, when somebody last did.
    pub(crate) seen: FxHashMap<(u32, i64), KeyHolder>,
    /// Who held which key for nothing at the last look, and at every look since.
    pub(crate) idle: FxHashMap<(i32, i64), Timestamp>,
}

/// Who was seen to hold the key of an execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeyHolder {
    pub(crate) pid: i32,
    /// When that session began, where this role may see it.
    pub(crate) start: Option<Timestamp>,
    /// Something tied it to the worker.
    pub(crate) tied: bool,
    /// The session has ended since.
    pub(crate) ended: bool,
}

/// What must stay the same for anything seen before to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) own_pid: i32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) in_recovery: bool,
}

impl Epoch {
    pub(super) fn of(server: &Server) -> Self {
        Self { own_pid: server.lasting_pid(), started_at: server.started_at, in_recovery: server.in_recovery }
    }
}

/// Who holds which bigint key of our own database; none for a prepared transaction.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The locks are of this snapshot.
    pub(super) is_known: bool,
    pub(super) datid: u32,
    pub(super) holders: FxHashMap<i64, Option<i32>>,
    /// Which processes changed rows of which tables in their open transactions, of logs of executions and of work queues.
    writers: FxHashSet<(i32, u32)>,
}

impl Held {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let datid = snapshot.server().map_or(0, |server| server.datid);
        let is_known = snapshot.locks.is_known();
        let locks = snapshot.locks.last_rows();
        let held = locks.iter().filter(|lock| {
            lock.granted && lock.tag.locktype() == LockType::Advisory && lock.tag.database() == Some(datid)
        });
        let holders = held.filter_map(|lock| match lock.tag.advisory_key()? {
            LockKey::Bigint(number) => Some((number, lock.pid)),
            LockKey::Pair(..) => None,
        });
        let tables: FxHashSet<u32> = snapshot
            .task_sets
            .iter()
            .filter_map(|set| set.tables.log)
            .chain(snapshot.systems.items.iter().map(|table| table.source.table))
            .collect();
        let written = locks.iter().filter(|lock| {
            lock.granted && lock.mode == LockMode::RowExclusive && lock.tag.locktype() == LockType::Relation
        });
        let written = written.filter(|lock| lock.tag.database() == Some(datid));
        let writers = written.filter_map(|lock| Some((lock.pid?, lock.tag.relation()?)));
        let writers = writers.filter(|(_, table)| tables.contains(table)).collect();
        Self { is_known, datid, holders: holders.collect(), writers }
    }

    /// Whether the open transaction of a process has changed rows of a table.
    pub(super) fn writes(&self, pid: i32, table: u32) -> bool {
        self.writers.contains(&(pid, table))
    }
}
