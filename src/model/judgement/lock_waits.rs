//! Number and duration of the waits for each lock since locktop began to poll. The server keeps no such numbers.
//!
//! A wait counts for its duration at the last poll that saw it, and a wait that begins and ends between two polls is
//! missed: the true numbers are at least as large. Locks whose id is not reused are counted together, as in
//! `lock_contention` of the schema: the rows of a table, and the ends of transactions.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::backend::Backend;
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::lock_name::LockNames;
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::wait_graph::{WaitGraph, Waiter};
use crate::model::{Text, Timestamp, words};

use crate::order::SortExt;

/// Maximum number of locks kept. Beyond it, the locks with the least total wait time are dropped.
const MOST: usize = 1000;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct LockWaits {
    /// The time when the locks were first read, by the server's clock; `None` before that.
    pub since: Option<Timestamp>,
    pub locks: Vec<WaitedLock>,
    pub forgotten: u64,
}

rows! {
    as waited_rows;

    pub struct WaitedLock in Waiteds {
        1 tag: LockTag,
        /// The name of the lock when a wait for it last began: text of the server.
        2 name: Text,
        /// Waits seen at one or more polls, each counted once.
        3 waits: u64,
        /// Total duration of all waits, in seconds.
        4 total: f64,
        /// Duration of the longest wait, in seconds.
        5 longest: f64,
        6 longest_mode: LockMode,
        7 waiting: u32,
        8 first: Timestamp,
        9 last: Timestamp,
    }
}

impl LockWaits {
    /// Total wait time for all locks, in seconds.
    pub fn total(&self) -> f64 {
        self.locks.iter().map(|lock| lock.total).sum()
    }

    /// `None` if the lock was never waited for or has been dropped.
    pub fn get(&self, tag: &LockTag) -> Option<&WaitedLock> {
        self.locks.iter().find(|lock| lock.tag == *tag)
    }
}

/// The tag by which waits are counted. Rows and pages are reduced to their table, since their positions change with every
/// update. Transactions are reduced to their type, since a transaction id does not recur.
pub fn contended(awaited: &LockTag) -> LockTag {
    let (database, relation) = (awaited.database(), awaited.relation());
    let anew = LockTag::new(awaited.locktype());
    match awaited.locktype() {
        LockType::Tuple | LockType::Page => anew.with_database(database).with_relation(relation),
        LockType::TransactionId
        | LockType::VirtualXid
        | LockType::SpecToken
        | LockType::ApplyTransaction
        | LockType::SafeSnapshot => anew,
        _ => *awaited,
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedWait {
    pub(crate) seconds: f64,
    poll: u64,
}

#[derive(Debug, Clone, Default)]
pub struct WaitCounter {
    pub(crate) waits: Arc<LockWaits>,
    places: FxHashMap<LockTag, usize>,
    /// By process id and start of the wait: a process waits for one lock at a time.
    pub(crate) going_on: FxHashMap<(i32, Timestamp), CountedWait>,
    polls: u64,
}

impl WaitCounter {
    /// Continues from the counts of a recording and its ongoing waits, with the seconds already counted for each.
    pub(crate) fn restored(
        waits: LockWaits,
        going_on: impl IntoIterator<Item = ((i32, Timestamp), f64)>,
    ) -> Self {
        Self {
            places: waits.locks.iter().enumerate().map(|(at, lock)| (lock.tag, at)).collect(),
            waits: Arc::new(waits),
            going_on: going_on
                .into_iter()
                .map(|(wait, seconds)| (wait, CountedWait { seconds, poll: 0 }))
                .collect(),
            polls: 0,
        }
    }

    /// Returns the counts up to this snapshot. A snapshot without readable locks adds nothing.
    pub fn observe(
        &mut self,
        snapshot: &Snapshot,
        graph: &WaitGraph,
        index: &SnapshotIndex,
        names: &LockNames,
    ) -> Arc<LockWaits> {
        let is_first = self.waits.since.is_none();
        let is_calm = graph.queues.is_empty() && self.going_on.is_empty();
        if snapshot.locks.is_known() && (is_first || !is_calm) {
            self.count(snapshot, graph, index, names);
        }
        Arc::clone(&self.waits)
    }

    fn count(&mut self, snapshot: &Snapshot, graph: &WaitGraph, index: &SnapshotIndex, names: &LockNames) {
        self.polls += 1;
        let now = snapshot.locks.taken_at.unwrap_or(snapshot.taken_at);
        let waits = Arc::make_mut(&mut self.waits);
        waits.since.get_or_insert(now);
        for lock in &mut waits.locks {
            lock.waiting = 0;
        }
        for queue in &graph.queues {
            let holder = queue.holders.first().and_then(|holder| index.backend(snapshot, holder.party.pid()));
            // A wait without a start time has only just begun.
            for (waiter, start) in queue.waiters.iter().filter_map(|one| Some((one, one.wait_start?))) {
                let awaited = index.awaited(&queue.tag, waiter.pid);
                let seen = SeenWait { awaited, waiter, start, now };
                let counted = self.going_on.get(&(waiter.pid, start)).map(|counted| counted.seconds);
                let name = || name(snapshot, names, holder, awaited);
                let seconds = seen.add(waits, &mut self.places, counted, name);
                self.going_on.insert((waiter.pid, start), CountedWait { seconds, poll: self.polls });
            }
        }
        let poll = self.polls;
        self.going_on.retain(|_, counted| counted.poll == poll);
        if waits.locks.len() > MOST {
            forget(waits, &mut self.places);
        }
    }
}

struct SeenWait<'a> {
    awaited: &'a LockTag,
    waiter: &'a Waiter,
    start: Timestamp,
    now: Timestamp,
}

impl SeenWait<'_> {
    /// Adds the time not yet counted to the lock; returns the duration of the wait so far, in seconds.
    fn add(
        &self,
        waits: &mut LockWaits,
        places: &mut FxHashMap<LockTag, usize>,
        counted: Option<f64>,
        name: impl Fn() -> Text,
    ) -> f64 {
        // A clock that was set back must not reduce the count.
        let length = (self.now - self.start).as_seconds_f64().max(counted.unwrap_or_default()).max(0.0);
        let tag = contended(self.awaited);
        if tag.relation().is_some() && !places.contains_key(&tag) {
            take_over(waits, places, (tag, &name()));
        }
        let at = *places.entry(tag).or_insert(waits.locks.len());
        if at >= waits.locks.len() {
            waits.locks.push(self.first(tag, name()));
        }
        let Some(lock) = waits.locks.get_mut(at) else { return length };
        if counted.is_none() {
            // The current holder may give a better name than the previous one; once per poll is enough.
            if lock.waits > 0 && lock.waiting == 0 {
                lock.name = name();
            }
            lock.waits += 1;
        } else if lock.waiting == 0 && has_no_name(lock) {
            lock.name = name();
        }
        lock.total += length - counted.unwrap_or_default();
        if length > lock.longest {
            (lock.longest, lock.longest_mode) = (length, self.waiter.mode);
        }
        lock.waiting += 1;
        lock.first = lock.first.min(self.start);
        lock.last = self.now;
        length
    }

    fn first(&self, tag: LockTag, name: Text) -> WaitedLock {
        WaitedLock {
            tag,
            name,
            waits: 0,
            total: 0.0,
            longest: 0.0,
            longest_mode: self.waiter.mode,
            waiting: 0,
            first: self.start,
            last: self.now,
        }
    }
}

fn has_no_name(lock: &WaitedLock) -> bool {
    lock.tag.relation().is_some_and(|oid| lock.name.ends_with(&format!("relation {oid}")))
}

/// A table that was dropped and created again has a new OID: it takes over the entry of the same name that no session waits
/// for.
fn take_over(waits: &mut LockWaits, places: &mut FxHashMap<LockTag, usize>, (tag, name): (LockTag, &Text)) {
    let kind = |tag: &LockTag| (tag.locktype(), tag.database());
    let is_old = |lock: &WaitedLock| lock.waiting == 0 && lock.name == *name && kind(&lock.tag) == kind(&tag);
    if let Some(at) = waits.locks.iter().position(is_old)
        && let Some(lock) = waits.locks.get_mut(at)
    {
        places.remove(&lock.tag);
        lock.tag = tag;
        places.insert(tag, at);
    }
}

/// `accounts`, `rows of accounts`, `Prisma Migrate`, `ends of transactions`: text of the server. The holder may provide a
/// better name for an advisory lock.
pub fn name(snapshot: &Snapshot, names: &LockNames, holder: Option<&Backend>, awaited: &LockTag) -> Text {
    let relation = |what: &str| {
        let tag = contended(awaited).with_locktype(LockType::Relation);
        format!("{what} of {}", words::target(snapshot, names, &tag, None))
    };
    match awaited.locktype() {
        LockType::Tuple => relation("rows").into(),
        LockType::Page => relation("pages").into(),
        LockType::TransactionId => "ends of transactions".into(),
        LockType::VirtualXid => "ends of virtual transactions".into(),
        LockType::SafeSnapshot => "safe snapshots".into(),
        LockType::Advisory => words::target(snapshot, names, awaited, holder).into(),
        _ => words::target(snapshot, names, awaited, None).into(),
    }
}

/// Drops a tenth of the locks: those with the least total wait time, and none that a session waits for now.
fn forget(waits: &mut LockWaits, places: &mut FxHashMap<LockTag, usize>) {
    let mut quiet: Vec<&WaitedLock> = waits.locks.iter().filter(|lock| lock.waiting == 0).collect();
    quiet.order_by(|a, b| a.total.total_cmp(&b.total));
    let gone: FxHashSet<LockTag> = quiet.into_iter().take(MOST / 10).map(|lock| lock.tag).collect();
    waits.forgotten += gone.len() as u64;
    waits.locks.retain(|lock| !gone.contains(&lock.tag));
    *places = waits.locks.iter().enumerate().map(|(at, lock)| (lock.tag, at)).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::backend::State;
    use crate::sample::{Builder, advisory, at, relation};

    /// Sessions 1, 2, … wait for a lock that session 100 holds, each for the given seconds at `now`.
    fn observed(counter: &mut WaitCounter, now: f64, tag: LockTag, waits: &[f64]) -> Arc<LockWaits> {
        observed_with(counter, Builder { now, ..Builder::default() }, tag, waits)
    }

    fn observed_with(
        counter: &mut WaitCounter,
        mut builder: Builder,
        tag: LockTag,
        waits: &[f64],
    ) -> Arc<LockWaits> {
        builder.session(100, "app@web", State::IdleInTransaction, 60.0, "SELECT 1");
        builder.lock(100, tag, LockMode::Exclusive, None);
        for (pid, wait) in (1..).zip(waits) {
            builder.session(pid, "app@web", State::Active, *wait, "SELECT 2");
            builder.lock(pid, tag, LockMode::Exclusive, Some(*wait));
        }
        let view = builder.view();
        counter.observe(view.snapshot.as_ref().unwrap(), &view.graph, &view.index, &LockNames::default())
    }

    fn numbers(waits: &LockWaits) -> Vec<(u64, f64, f64, u32)> {
        let of = |lock: &WaitedLock| (lock.waits, lock.total, lock.longest, lock.waiting);
        waits.locks.iter().map(of).collect()
    }

    #[test]
    fn a_wait_counts_once_for_as_long_as_it_was_seen_to_last() {
        let (mut counter, tag) = (WaitCounter::default(), advisory(42));
        assert_eq!(observed(&mut counter, 0.0, tag, &[]).since, Some(at(0.0)));
        assert_eq!(numbers(&observed(&mut counter, 1.0, tag, &[0.5])), [(1, 0.5, 0.5, 1)]);
        assert_eq!(numbers(&observed(&mut counter, 2.0, tag, &[1.5, 0.5])), [(2, 2.0, 1.5, 2)]);
        let over = observed(&mut counter, 3.0, tag, &[]);
        assert_eq!(numbers(&over), [(2, 2.0, 1.5, 0)], "no session waits any more, and the counts stay");
        assert_eq!(numbers(&observed(&mut counter, 9.0, tag, &[0.25])), [(3, 2.25, 1.5, 1)], "another wait");
        assert_eq!(observed(&mut counter, 9.0, tag, &[]).since, Some(at(0.0)));
    }

    #[test]
    fn a_table_has_its_name_as_soon_as_it_is_known() {
        let (mut counter, tag) = (WaitCounter::default(), relation(5));
        assert_eq!(&*observed(&mut counter, 1.0, tag, &[0.5]).locks[0].name, "relation 5");
        let named = Builder { now: 2.0, relations: vec![(5, "accounts")], ..Builder::default() };
        assert_eq!(&*observed_with(&mut counter, named, tag, &[1.5]).locks[0].name, "accounts");
    }

    #[test]
    fn a_recreated_table_keeps_its_line() {
        let mut counter = WaitCounter::default();
        let mut observe = |now: f64, oid: u32, name: &'static str, waits: &[f64]| {
            let mut builder = Builder { now, relations: vec![(oid, name)], ..Builder::default() };
            builder.session(100, "app@web", State::IdleInTransaction, 60.0, "SELECT 1");
            builder.lock(100, relation(oid), LockMode::AccessExclusive, None);
            for (pid, wait) in (1..).zip(waits) {
                builder.session(pid, "app@web", State::Active, *wait, "SELECT 2");
                builder.lock(pid, relation(oid), LockMode::AccessShare, Some(*wait));
            }
            let view = builder.view();
            counter.observe(view.snapshot.as_ref().unwrap(), &view.graph, &view.index, &LockNames::default())
        };
        observe(1.0, 5, "accounts", &[1.0]);
        observe(2.0, 5, "accounts", &[]);
        observe(3.0, 6, "orders", &[0.5]);
        let waits = observe(4.0, 7, "accounts", &[0.5]);
        assert_eq!(numbers(&waits), [(2, 1.5, 1.0, 1), (1, 0.5, 0.5, 0)]);
        assert!(waits.get(&relation(7)).is_some() && waits.get(&relation(5)).is_none());
    }

    #[test]
    fn a_clock_that_was_set_back_takes_nothing_away() {
        let (mut counter, tag) = (WaitCounter::default(), advisory(42));
        assert_eq!(numbers(&observed(&mut counter, 10.0, tag, &[8.0])), [(1, 8.0, 8.0, 1)]);
        assert_eq!(numbers(&observed(&mut counter, 5.0, tag, &[3.0])), [(1, 8.0, 8.0, 1)]);
        assert_eq!(numbers(&observed(&mut counter, 12.0, tag, &[10.0])), [(1, 10.0, 10.0, 1)]);
    }

    #[test]
    fn locks_that_could_not_be_read_count_no_waits() {
        let (mut counter, tag) = (WaitCounter::default(), advisory(42));
        let before = observed(&mut counter, 1.0, tag, &[1.0]);
        let view = Builder { now: 2.0, ..Builder::default() }.view();
        let mut snapshot = Snapshot::clone(view.snapshot.as_ref().unwrap());
        snapshot.locks.error = Some("canceled".into());
        assert_eq!(counter.observe(&snapshot, &view.graph, &view.index, &LockNames::default()), before);
    }

    #[test]
    fn rows_are_taken_together_by_their_table() {
        let row = |tuple| relation(5).with_locktype(LockType::Tuple).with_page(0).with_tuple(tuple);
        assert_eq!(contended(&row(1)), contended(&row(2)));
        let transaction = |id| LockTag::new(LockType::TransactionId).with_transactionid(id);
        assert_eq!(contended(&transaction(1)), contended(&transaction(2)));
        assert_ne!(contended(&advisory(1)), contended(&advisory(2)));
        let (mut counter, tag) = (WaitCounter::default(), row(1));
        assert_eq!(&*observed(&mut counter, 1.0, tag, &[1.0]).locks[0].name, "rows of relation 5");
    }

    #[test]
    fn the_cheapest_of_too_many_locks_are_dropped() {
        let mut counter = WaitCounter::default();
        let most = i64::try_from(MOST).unwrap();
        for key in 0..=most {
            observed(&mut counter, 1.0, advisory(key), &[if key == 0 { 900.0 } else { 1.0 }]);
        }
        let waits = observed(&mut counter, 2.0, advisory(0), &[]);
        assert_eq!((waits.locks.len(), waits.forgotten), (MOST + 1 - MOST / 10, 100));
        assert!(waits.get(&advisory(0)).is_some() && waits.get(&advisory(most)).is_some());
    }
}
