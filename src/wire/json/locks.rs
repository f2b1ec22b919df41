//! All advisory locks, and all locks that take part in a wait.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::readable;
use super::rows::{Key, Time};
use crate::model::lock::{self, LockTag, LockType};
use crate::model::lock_name::LockNames;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::wait_graph::{Party, WaitGraph};
use crate::wire::gids::Gids;
use crate::wire::words::Words;

#[derive(Debug, Serialize)]
pub(super) struct Lock<'a> {
    locktype: &'static str,
    database: Option<u32>,
    relation: Option<u32>,
    relation_name: Option<&'a str>,
    page: Option<u32>,
    tuple: Option<u16>,
    virtualxid: Option<String>,
    transactionid: Option<u32>,
    classid: Option<u32>,
    objid: Option<u32>,
    objsubid: Option<u16>,
    key: Option<Key>,
    name: Option<String>,
    mode: &'static str,
    granted: bool,
    pid: Option<i32>,
    gid: Option<&'a str>,
    virtualtransaction: String,
    wait_start: Option<Time>,
}

#[derive(Debug)]
pub(super) struct Locks<'a> {
    pub(super) rows: Vec<Lock<'a>>,
    places: FxHashMap<usize, usize>,
}

impl<'a> Locks<'a> {
    pub(super) fn of(
        snapshot: &'a Snapshot,
        graph: &WaitGraph,
        index: &SnapshotIndex,
        lock_names: &LockNames,
        gids: &Gids<'a>,
    ) -> Self {
        let awaited: FxHashSet<LockTag> = graph.queues.iter().map(|queue| queue.tag).collect();
        let writer = Writer { snapshot, words: Words::of(snapshot, index, lock_names), gids };
        let mut locks = Self { rows: Vec::new(), places: FxHashMap::default() };
        for (index, lock) in readable(&snapshot.locks).iter().enumerate() {
            let advisory = lock.tag.locktype() == LockType::Advisory;
            if advisory || !lock.granted || awaited.contains(&lock.tag) {
                locks.places.insert(index, locks.rows.len());
                locks.rows.push(writer.lock(lock));
            }
        }
        locks
    }

    pub(super) fn place(&self, index: usize) -> Option<usize> {
        self.places.get(&index).copied()
    }
}

struct Writer<'a, 'b> {
    snapshot: &'a Snapshot,
    words: Words<'b>,
    gids: &'b Gids<'a>,
}

impl<'a> Writer<'a, '_> {
    fn lock(&self, lock: &lock::Lock) -> Lock<'a> {
        let tag = lock.tag;
        Lock {
            locktype: tag.locktype().as_str(),
            database: tag.database(),
            relation: tag.relation(),
            relation_name: self.snapshot.names.relation(&tag).map(|name| &**name),
            page: tag.page(),
            tuple: tag.tuple(),
            virtualxid: tag.virtualxid().map(|virtualxid| virtualxid.to_string()),
            transactionid: tag.transactionid(),
            classid: tag.classid(),
            objid: tag.objid(),
            objsubid: tag.objsubid(),
            key: tag.advisory_key().map(Into::into),
            name: self.words.name(&tag, lock.pid).map(|name| name.to_string()),
            mode: lock.mode.as_str(),
            granted: lock.granted,
            pid: lock.pid,
            gid: match lock.pid {
                Some(_) => None,
                None => self.gids.gid(Party::Prepared(lock.virtualtransaction)),
            },
            virtualtransaction: lock.virtualtransaction.to_string(),
            wait_start: lock.wait_start.map(Time),
        }
    }
}
