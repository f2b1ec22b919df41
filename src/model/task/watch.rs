use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::Timestamp;
use crate::model::lock::{LockMode, LockType};
use crate::model::lock_key::LockKey;
use crate::model::snapshot::{Server, Snapshot};

/// Observations from earlier snapshots. Valid only for one connection to one run of one server in one role: a reconnect,
/// a restart or a promotion resets them.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    pub(crate) epoch: Option<Epoch>,
    /// Executions, by set and id, and since when their key was free in every snapshot.
    pub(crate) free: FxHashMap<(u32, i64), Timestamp>,
    /// The last seen holder of the key of an execution, by set and id.
    pub(crate) seen: FxHashMap<(u32, i64), KeyHolder>,
    /// Process and key of keys held without a running task, and since when every snapshot showed them.
    pub(crate) idle: FxHashMap<(i32, i64), Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeyHolder {
    pub(crate) pid: i32,
    /// Start of the session, if this role may see it.
    pub(crate) start: Option<Timestamp>,
    /// The session was linked to the worker.
    pub(crate) tied: bool,
    pub(crate) ended: bool,
}

/// Must stay the same for earlier observations to count.
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

#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) is_known: bool,
    pub(super) datid: u32,
    pub(super) holders: FxHashMap<LockKey, Option<i32>>,
    /// Processes and the tables (execution logs and work queues) changed in their open transactions.
    writers: FxHashSet<(i32, u32)>,
}

impl Held {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let datid = snapshot.server().map_or(0, |server| server.datid);
        let is_known = snapshot.locks.is_known();
        let locks = snapshot.locks.last_rows();
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
        Self { is_known, datid, holders: snapshot.key_holders(), writers }
    }

    pub(super) fn writes(&self, pid: i32, table: u32) -> bool {
        self.writers.contains(&(pid, table))
    }
}
