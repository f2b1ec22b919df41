use std::hash::Hash;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::model::awaited_locks::AwaitedLock;
use crate::model::backend::Backend;
use crate::model::blame::{Blame, BlameGrouping, BlamePeriod, BlameRow};
use crate::model::lease::{LeaseId, LeaseRow};
use crate::model::lock::{Lock, LockTag, LockType, Prepared, VirtualTransaction};
use crate::model::lock_name::{LockName, LockNames};
use crate::model::plan::Verb;
use crate::model::promise::Promise;
use crate::model::snapshot::Snapshot;
use crate::model::task::{TaskId, TaskRow};
use crate::model::view::{SnapshotView, View};
use crate::model::wait_graph::{Party, Queue, Release, Root, TreeNode, Waiter};
use crate::model::work_queue::{ItemId, ItemRow};
use crate::model::{Timestamp, words};

/// With more waiters than this, the graph is not searched for each of them: the cost is quadratic. With 1,000 in one
/// queue, the searches take 5 ms per poll (`cargo bench --bench cost`, Backends).
const SEARCHED: u32 = 250;

#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub view: &'a View,
    pub snapshot: &'a Snapshot,
    pub index: &'a ViewIndex,
    pub names: &'a LockNames,
    pub zone: crate::model::zone::Zone,
}

impl<'a> Context<'a> {
    pub fn hidden(&self) -> usize {
        self.snapshot.backends.last_rows().iter().filter(|backend| self.is_hidden(backend)).count()
    }

    /// Whether the state of a session is hidden from the role.
    pub fn is_hidden(&self, backend: &Backend) -> bool {
        backend.state.is_none()
            && backend.backend_start.is_none()
            && self.snapshot.server().is_some_and(|server| !server.sees_all)
    }

    /// Seconds from `since` to the snapshot, by the server's clock.
    pub fn age(&self, since: Option<Timestamp>) -> Option<f64> {
        since.map(|since| (self.snapshot.taken_at - since).as_seconds_f64().max(0.0))
    }

    /// Seconds from the snapshot to `at`; negative after that.
    pub fn until(&self, at: Timestamp) -> f64 {
        (at - self.snapshot.taken_at).as_seconds_f64()
    }

    /// Seconds that a lock had been waited for when `pg_locks` was read: rows that could not be read again do not age.
    pub fn wait_age(&self, since: Option<Timestamp>) -> Option<f64> {
        let read = self.snapshot.locks.taken_at.unwrap_or(self.snapshot.taken_at);
        since.map(|since| (read - since).as_seconds_f64().max(0.0))
    }

    /// Age of the rows of `pg_locks` in seconds, if the last attempt to read them failed.
    pub fn locks_old(&self) -> Option<f64> {
        self.snapshot.locks.error.as_ref()?;
        self.age(self.snapshot.locks.taken_at)
    }

    pub fn time_of_day(&self, at: Timestamp) -> String {
        at.with_timezone(&self.zone).format("%H:%M:%S").to_string()
    }

    pub fn day_and_time(&self, at: Timestamp) -> String {
        at.with_timezone(&self.zone).format("%Y-%m-%d %H:%M:%S").to_string()
    }

    pub fn backend(&self, pid: i32) -> Option<&'a Backend> {
        self.view.index.backend(self.snapshot, pid)
    }

    /// `again` selects one of several executions of the task.
    pub fn task(&self, task: TaskId, again: Option<i64>) -> Option<&'a TaskRow> {
        self.view.tasks.rows.get(*self.index.tasks.get(&(task, again))? as usize)
    }

    pub fn lease(&self, id: LeaseId) -> Option<&'a LeaseRow> {
        self.view.leases.rows.get(*self.index.leases.get(&id)? as usize)
    }

    pub fn item(&self, id: ItemId) -> Option<&'a ItemRow> {
        self.view.queue.rows.get(*self.index.items.get(&id)? as usize)
    }

    pub fn prepared(&self, virtualtransaction: VirtualTransaction) -> Option<&'a Prepared> {
        self.view.index.prepared(self.snapshot, virtualtransaction)
    }

    pub fn queue(&self, tag: &LockTag) -> Option<&'a Queue> {
        self.view.index.queue(&self.view.graph, tag)
    }

    /// A lock that sessions wait for; a row is identified by its tuple lock.
    pub fn awaited_lock(&self, tag: &LockTag) -> Option<&'a AwaitedLock> {
        self.view.index.awaited_locks().get(tag)
    }

    pub fn node(&self, party: Party) -> Option<(usize, &'a TreeNode)> {
        self.view.index.node(&self.view.graph, party)
    }

    pub fn root(&self, party: Party) -> Option<&'a Root> {
        self.view.index.root(&self.view.graph, party)
    }

    /// The effect of ending a root or a member of a deadlock.
    pub fn ending(&self, party: Party) -> Option<&'a Root> {
        self.view.index.ending(&self.view.graph, party)
    }

    /// Number of parties that wait behind it, directly or indirectly. For a party that waits itself, each call searches the
    /// graph: use it only for visible rows.
    pub fn blocked(&self, party: Party) -> u32 {
        match self.ending(party) {
            Some(root) => root.blocked,
            None if self.node(party).is_some() => self.view.graph.blocks(party),
            None => 0,
        }
    }

    /// The same for a whole table, to sort or filter it: with many waiters, for a party that waits itself only the parties
    /// below it in the forest count.
    pub fn blocked_of_all(&self, party: Party) -> u32 {
        if self.view.graph.waiting <= SEARCHED {
            return self.blocked(party);
        }
        let below = || self.node(party).map_or(0, |(_, node)| node.below);
        self.ending(party).map_or_else(below, |root| root.blocked)
    }

    pub fn released(&self, party: Party) -> Release {
        self.snapshot_view().release(Verb::Terminate, &[party])
    }

    pub fn snapshot_view(&self) -> SnapshotView<'a> {
        SnapshotView { view: self.view, snapshot: self.snapshot }
    }

    /// The effect of its end in numbers, for visible rows; `None` for a party that blocks no session.
    pub fn promise(&self, party: Party) -> Option<Promise> {
        let look = self.snapshot_view();
        match self.ending(party) {
            Some(root) => Some(look.promise(root)),
            None if self.blocked(party) > 0 => Some(look.promise_of(Verb::Terminate, &[party])),
            None => None,
        }
    }

    /// The same for a whole table: with many waiters, `None` for a session that waits itself.
    pub fn promise_of_all(&self, party: Party) -> Option<Promise> {
        if self.view.graph.waiting <= SEARCHED {
            return self.promise(party);
        }
        self.ending(party).map(Promise::from)
    }

    /// The queue that it waits in, and its request.
    pub fn waiter(&self, party: Party) -> Option<(&'a Queue, &'a Waiter)> {
        let (queue, place) = self.view.graph.wait_of(party)?;
        Some((queue, queue.waiters.get(place)?))
    }

    /// The same for a node of the forest.
    pub fn waiter_at(&self, node: &TreeNode) -> Option<(&'a Queue, &'a Waiter)> {
        let (queue, place) = node.waits?;
        let queue = self.view.graph.queues.get(queue)?;
        Some((queue, queue.waiters.get(place)?))
    }

    /// Role and application, `app@web`; the type of the process if it is not a client.
    pub fn who(&self, backend: &Backend) -> String {
        words::who(backend)
    }

    /// `pid` is a process that holds the key or waits for it.
    pub fn lock_name(&self, tag: &LockTag, pid: Option<i32>) -> Option<LockName> {
        words::lock_name(self.snapshot, self.names, tag, self.namer(tag, pid))
    }

    pub fn lock_label(&self, tag: &LockTag, pid: Option<i32>) -> String {
        let namer = self.namer(tag, pid);
        crate::text::one_line(&words::target(self.snapshot, self.names, tag, namer)).into_owned()
    }

    fn namer(&self, tag: &LockTag, pid: Option<i32>) -> Option<&'a Backend> {
        self.snapshot_view().namer(self.names, tag, pid)
    }

    /// What `waiter` waits for: for a transaction, the row behind it if the waiter's tuple lock shows it.
    pub fn awaited(&self, tag: &'a LockTag, waiter: i32) -> &'a LockTag {
        self.view.index.awaited(tag, waiter)
    }

    pub fn wait_label(&self, tag: &LockTag, waiter: i32) -> String {
        self.lock_label(self.view.index.awaited(tag, waiter), Some(waiter))
    }
}

/// An index of the rows of a view, built once per view. The snapshot has its own index.
#[derive(Debug, Clone, Default)]
pub struct ViewIndex {
    pub(super) tasks: FxHashMap<(TaskId, Option<i64>), u32>,
    pub(super) leases: FxHashMap<LeaseId, u32>,
    pub(super) items: FxHashMap<ItemId, u32>,
    /// The lines of the Blame screen, computed when it is shown.
    pub(super) blame: Shown,
    /// The line about requests that do not wait, computed when the server is quiet.
    pub(super) attempts: OnceLock<Option<String>>,
    /// Something on the server belongs to a database other than the connected one.
    pub(super) other_database: bool,
    pub(super) advisory_held: usize,
}

fn positions<Id: Eq + Hash>(ids: impl Iterator<Item = Id>) -> FxHashMap<Id, u32> {
    ids.zip(0..).collect()
}

impl ViewIndex {
    pub fn of(view: &View) -> Self {
        Self {
            tasks: positions(view.tasks.rows.iter().map(|row| (row.task, row.again))),
            leases: positions(view.leases.rows.iter().map(|row| row.id)),
            items: positions(view.queue.rows.iter().map(|row| row.id)),
            other_database: view.snapshot.as_deref().is_some_and(has_other_database),
            advisory_held: view.snapshot.as_deref().map_or(0, advisory_held),
            ..Self::default()
        }
    }
}

fn has_other_database(snapshot: &Snapshot) -> bool {
    let Some(server) = snapshot.server() else { return true };
    let backends = snapshot.backends.last_rows().iter().filter_map(|backend| backend.datid);
    let locks = snapshot.locks.last_rows().iter().filter_map(|lock| lock.tag.database());
    let mut prepared = snapshot.prepared.last_rows().iter().filter_map(|row| row.database.as_deref());
    backends.chain(locks).any(|oid| oid != 0 && oid != server.datid)
        || prepared.any(|database| *database != *server.database)
}

fn advisory_held(snapshot: &Snapshot) -> usize {
    let is_held = |lock: &&Lock| lock.granted && lock.tag.locktype() == LockType::Advisory;
    snapshot.locks.last_rows().iter().filter(is_held).count()
}

#[derive(Debug, Clone, Default)]
pub struct Shown {
    pub group: BlameGrouping,
    /// Time span before the last poll in which waits count.
    pub span: BlamePeriod,
    pub rows: Vec<BlameRow>,
    /// The row whose episodes are listed; `None` for all rows.
    pub of: Option<u64>,
    pub episodes: Vec<u64>,
}

impl Shown {
    pub fn take_rows(&mut self, blame: &Blame, group: BlameGrouping, span: BlamePeriod) {
        (self.group, self.span) = (group, span);
        self.rows = blame.by(group, span);
    }

    pub fn take_episodes(&mut self, blame: &Blame, of: Option<u64>) {
        self.of = of;
        let row = of.and_then(|of| self.row(of));
        let episodes = blame.episodes_in(self.span);
        let wanted = episodes.filter(|episode| row.is_none_or(|row| row.has(episode)));
        self.episodes = wanted.map(|episode| episode.number).collect();
    }

    pub fn row(&self, id: u64) -> Option<&BlameRow> {
        self.rows.iter().find(|row| row.id == id)
    }
}
