//! A view, and how it is put into words: what the cells, the titles and the detail pages are made from.

use super::index::ViewIndex;
use crate::model::awaited_locks::AwaitedLock;
use crate::model::backend::Backend;
use crate::model::lease::{LeaseId, LeaseRow};
use crate::model::lock::{LockTag, Prepared, VirtualTransaction};
use crate::model::lock_name::{LockName, LockNames};
use crate::model::plan::Verb;
use crate::model::promise::Promise;
use crate::model::snapshot::Snapshot;
use crate::model::task::{TaskId, TaskRow};
use crate::model::view::{SnapshotView, View};
use crate::model::wait_graph::{End, Party, Queue, Release, Root, TreeNode};
use crate::model::work_queue::{ItemId, ItemRow};
use crate::model::{Timestamp, words};

/// Where more wait, nobody searches the graph for each of them: that would be the square of their number. With 1,000 in one queue it
/// takes 5 ms at each look (`cargo bench --bench cost`, Backends).
const SEARCHED: u32 = 250;

/// A view and everything needed to put it into words.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The view that is put into words.
    pub view: &'a View,
    /// The snapshot in that view.
    pub snapshot: &'a Snapshot,
    /// Where the rows of the tables are in the view.
    pub index: &'a ViewIndex,
    /// Names for advisory keys, as the view has them.
    pub names: &'a LockNames,
    /// The zone of times of day.
    pub zone: crate::model::zone::Zone,
}

impl<'a> Context<'a> {
    /// Whether everything is of the database that locktop is connected to: then nobody needs to be told which.
    pub fn is_one_database(&self) -> bool {
        !self.index.other_database
    }

    /// How many sessions and processes the role may not see the state of.
    pub fn hidden(&self) -> usize {
        self.snapshot.backends.last_rows().iter().filter(|backend| self.is_hidden(backend)).count()
    }

    /// Whether the role may not see the state of a session.
    pub fn is_hidden(&self, backend: &Backend) -> bool {
        backend.state.is_none()
            && backend.backend_start.is_none()
            && self.snapshot.server().is_some_and(|server| !server.sees_all)
    }

    /// Seconds between `since` and the snapshot, by the server's clock.
    pub fn age(&self, since: Option<Timestamp>) -> Option<f64> {
        since.map(|since| (self.snapshot.taken_at - since).as_seconds_f64().max(0.0))
    }

    /// Seconds that a lock was waited for, at the moment `pg_locks` was read: rows that could not be read anew grow no older.
    pub fn wait_age(&self, since: Option<Timestamp>) -> Option<f64> {
        let read = self.snapshot.locks.taken_at.unwrap_or(self.snapshot.taken_at);
        since.map(|since| (read - since).as_seconds_f64().max(0.0))
    }

    /// How old the rows of `pg_locks` are, where the last attempt to read them failed.
    pub fn locks_old(&self) -> Option<f64> {
        self.snapshot.locks.error.as_ref()?;
        self.age(self.snapshot.locks.taken_at)
    }

    /// A time of day in the zone of whoever looks.
    pub fn time_of_day(&self, at: Timestamp) -> String {
        at.with_timezone(&self.zone).format("%H:%M:%S").to_string()
    }

    /// `2026-11-20 14:02:31`, in the zone of whoever looks.
    pub fn day_and_time(&self, at: Timestamp) -> String {
        at.with_timezone(&self.zone).format("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// The backend with this process id.
    pub fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.view.index.backend(self.snapshot, pid)
    }

    /// A task, or one of several executions of it.
    pub fn task(&self, task: TaskId, again: Option<i64>) -> Option<&'a TaskRow> {
        self.view.tasks.rows.get(*self.index.tasks.get(&(task, again))? as usize)
    }

    /// A lease with its state; none where the view has none of that id.
    pub fn lease(&self, id: LeaseId) -> Option<&'a LeaseRow> {
        self.view.leases.rows.get(*self.index.leases.get(&id)? as usize)
    }

    /// An item of the work queue.
    pub fn item(&self, id: ItemId) -> Option<&'a ItemRow> {
        self.view.queue.rows.get(*self.index.items.get(&id)? as usize)
    }

    /// The prepared transaction behind a virtual transaction.
    pub fn prepared(&self, virtualtransaction: VirtualTransaction) -> Option<&'a Prepared> {
        self.view.index.prepared(self.snapshot, virtualtransaction)
    }

    /// The wait queue of a lock.
    pub fn queue(&self, tag: &LockTag) -> Option<&'a Queue> {
        self.view.index.queue(&self.view.graph, tag)
    }

    /// A lock that sessions wait for; of a row its tuple lock is named.
    pub fn awaited_lock(&self, tag: &LockTag) -> Option<&'a AwaitedLock> {
        self.view.index.awaited_locks().get(tag)
    }

    /// The place of a party in the forest, with its index there.
    pub fn node(&self, party: Party) -> Option<(usize, &'a TreeNode)> {
        self.view.index.node(&self.view.graph, party)
    }

    /// What a root blocks and frees.
    pub fn root(&self, party: Party) -> Option<&'a Root> {
        self.view.index.root(&self.view.graph, party)
    }

    /// What ending it would come to, of a root and of whoever is part of a deadlock.
    pub fn ending(&self, party: Party) -> Option<&'a Root> {
        self.view.index.ending(&self.view.graph, party)
    }

    /// How many wait behind it, directly or through others. Of whoever waits himself that is a search for each call: it is for the rows
    /// that are drawn.
    pub fn blocked(&self, party: Party) -> u32 {
        match self.ending(party) {
            Some(root) => root.blocked,
            None if self.node(party).is_some() => self.view.graph.blocks(party),
            None => 0,
        }
    }

    /// The same for a whole table, to put it in order or to filter it: where many wait, of whoever waits himself those below him in
    /// the forest.
    pub fn blocked_of_all(&self, party: Party) -> u32 {
        if self.view.graph.waiting <= SEARCHED {
            return self.blocked(party);
        }
        let below = || self.node(party).map_or(0, |(_, node)| node.below);
        self.ending(party).map_or_else(below, |root| root.blocked)
    }

    /// What its end does to those that wait behind it.
    pub fn released(&self, party: Party) -> Release {
        self.view.graph.release(&[party], End::Session)
    }

    /// The view with its snapshot.
    pub fn snapshot_view(&self) -> SnapshotView<'a> {
        SnapshotView { view: self.view, snapshot: self.snapshot }
    }

    /// The numbers of that, for the rows that are drawn; none of one that blocks no session.
    pub fn promise(&self, party: Party) -> Option<Promise> {
        let look = self.snapshot_view();
        match self.ending(party) {
            Some(root) => Some(look.promise(root)),
            None if self.blocked(party) > 0 => Some(look.promise_of(Verb::Terminate, &[party])),
            None => None,
        }
    }

    /// The same for a whole table: where many wait, of no session that waits itself.
    pub fn promise_of_all(&self, party: Party) -> Option<Promise> {
        if self.view.graph.waiting <= SEARCHED {
            return self.promise(party);
        }
        self.ending(party).map(Promise::from)
    }

    /// Who that is: role and application, `app@web`; the kind of process where it is no client.
    pub fn who(&self, backend: &Backend) -> String {
        words::who(backend)
    }

    /// What a key is called. `pid` is somebody who holds it or waits for it.
    pub fn lock_name(&self, tag: &LockTag, pid: Option<i32>) -> Option<LockName> {
        words::lock_name(self.snapshot, self.names, tag, self.namer(tag, pid))
    }

    /// What is locked, in words: a relation by its name, an advisory key by its name or number.
    pub fn lock_label(&self, tag: &LockTag, pid: Option<i32>) -> String {
        let namer = self.namer(tag, pid);
        crate::text::one_line(&words::target(self.snapshot, self.names, tag, namer)).into_owned()
    }

    fn namer(&self, tag: &LockTag, pid: Option<i32>) -> Option<&'a Backend> {
        self.snapshot_view().namer(self.names, tag, pid)
    }

    /// What `waiter` waits for: of a transaction the row behind it, where the waiter's tuple lock tells.
    pub fn awaited(&self, tag: &'a LockTag, waiter: i32) -> &'a LockTag {
        self.view.index.awaited(tag, waiter)
    }

    /// What `waiter` waits for, in words.
    pub fn wait_label(&self, tag: &LockTag, waiter: i32) -> String {
        self.lock_label(self.view.index.awaited(tag, waiter), Some(waiter))
    }
}
