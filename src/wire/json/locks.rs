//! All advisory locks, and all locks that take part in a wait.

use rustc_hash::{FxHashMap, FxHashSet};

use super::object::{Json, object};
use super::readable;
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::model::wait_graph::{Party, WaitGraph};
use crate::wire::gids::Gids;
use crate::wire::words::Words;

pub(super) struct Locks<'a> {
    snapshot: &'a Snapshot,
    rows: Vec<&'a Lock>,
    places: FxHashMap<usize, usize>,
}

impl<'a> Locks<'a> {
    pub(super) fn of(snapshot: &'a Snapshot, graph: &WaitGraph) -> Self {
        let awaited: FxHashSet<LockTag> = graph.queues.iter().map(|queue| queue.tag).collect();
        let mut locks = Self { snapshot, rows: Vec::new(), places: FxHashMap::default() };
        for (index, lock) in readable(&snapshot.locks).iter().enumerate() {
            let advisory = lock.tag.locktype() == LockType::Advisory;
            if advisory || !lock.granted || awaited.contains(&lock.tag) {
                locks.places.insert(index, locks.rows.len());
                locks.rows.push(lock);
            }
        }
        locks
    }

    pub(super) fn place(&self, index: usize) -> Option<usize> {
        self.places.get(&index).copied()
    }

    pub(super) fn written<'b>(
        &'b self,
        view: &'b View,
        gids: &'b Gids<'a>,
    ) -> impl Iterator<Item = impl Json> {
        self.rows.iter().map(move |lock| {
            let tag = lock.tag;
            let words = Words::of(self.snapshot, &view.index, &view.lock_names);
            object!(
                lock;
                locktype = tag.locktype(),
                database = tag.database(),
                relation = tag.relation(),
                relation_name = self.snapshot.names.relation(&tag),
                page = tag.page(),
                tuple = tag.tuple(),
                virtualxid = tag.virtualxid().map(|virtualxid| virtualxid.to_string()),
                transactionid = tag.transactionid(),
                classid = tag.classid(),
                objid = tag.objid(),
                objsubid = tag.objsubid(),
                key = tag.advisory_key(),
                name = words.name(&tag, lock.pid).map(|name| name.to_string()),
                mode,
                granted,
                pid,
                gid = match lock.pid {
                    Some(_) => None,
                    None => gids.gid(Party::Prepared(lock.virtualtransaction)),
                },
                virtualtransaction = lock.virtualtransaction.to_string(),
                wait_start,
            )
        })
    }
}
