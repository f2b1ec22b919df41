//! The next waits of waiters for which the server goes through a list that `pg_locks` shows one entry at a time. The
//! wait, the list and the source are:
//!
//! - a row that several transactions may have locked: the conflicting members of its multixact (`MultiXactIdWait` in
//!   `heapam.c`);
//! - a place in line for a row: the transaction that has the row (`heap_acquire_tuplock`, then `XactLockTableWait`);
//! - inserting a unique key: another transaction that inserts it (`_bt_check_unique` in `nbtinsert.c`);
//! - `CREATE`, `REINDEX`, `DROP INDEX CONCURRENTLY`, `DETACH PARTITION … CONCURRENTLY`: transactions that have locked
//!   the table, and old snapshots of the database (`WaitForLockersMultiple` in `lmgr.c`, `WaitForOlderSnapshots` in
//!   `indexcmds.c`);
//! - creating a logical slot: all transactions with an ID (`SnapBuildWaitSnapshot` in `snapbuild.c`);
//! - a commit with NOTIFY behind one that waits for a standby: the standby (`PreCommit_Notify` in `async.c`).

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::fronts::Leaders;
use super::index::Index;
use super::{Input, Party, Queue};
use crate::backend::{Backend, State};
use crate::lock::{LockMode, LockModes, LockTag, LockType};

mod held;

use held::{Concurrently, Held, Relation, concurrently, creates_slot, is_vacuum, relation};

/// `pg_database`, as `classid` of the lock that a commit with NOTIFY takes.
const PG_DATABASE: u32 = 1262;

/// The next waits of one waiter.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    /// Certain, unless they end before.
    pub(super) must: Vec<Party>,
    /// Possible.
    pub(super) may: Vec<Party>,
    /// Possible: any other session in its queue. A list of them all would be too long.
    pub(super) queue: bool,
    /// There are others, which are not known.
    pub(super) unknown: bool,
    /// It waits for a synchronous standby.
    pub(super) standby: bool,
}

/// A longer list of possible blockers is replaced by "not known": the lists of a thousand waiters would have a million
/// entries.
const MOST: usize = 64;

/// Maximum number of entries of all lists together; further lists are not known.
const ROOM: usize = 500_000;

impl List {
    /// Removes duplicates.
    fn settle(&mut self) {
        self.must.sort_unstable();
        self.must.dedup();
        let must = &self.must;
        self.may.retain(|party| must.binary_search(party).is_err());
        if self.may.len() > MOST {
            self.may.clear();
            self.unknown = true;
        }
    }

    /// Adds those of the others in a queue that may come first.
    fn others_in(&mut self, queue: &Queue, waiter: Party, may: impl Fn(Party) -> bool) {
        let others = queue.waiters.iter().map(|other| other.party).filter(|other| *other != waiter);
        let others: Vec<Party> = others.filter(|other| may(*other)).take(MOST + 1).collect();
        if others.len() > MOST { self.queue = true } else { self.may.extend(others) }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Party> {
        self.must.iter().chain(&self.may)
    }

    /// Whether ending sessions is not enough, as far as is known.
    pub(super) fn is_open(&self) -> bool {
        self.unknown || self.standby
    }
}

/// The next waits of all waiters, by the number of their group; most have no list.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    of: FxHashMap<usize, List>,
    /// Groups that wait for a synchronous standby.
    standby: FxHashSet<usize>,
}

impl Lists {
    pub(super) fn of(&self, group: usize) -> Option<&List> {
        self.of.get(&group)
    }

    pub(super) fn awaits_standby(&self, group: usize) -> bool {
        self.standby.contains(&group)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.standby.is_empty()
    }

    pub(super) fn new(input: Input<'_>, queues: &[Queue], index: &Index, leaders: &Leaders) -> Self {
        let backends: FxHashMap<i32, &Backend> = input.backends.iter().map(|row| (row.pid, row)).collect();
        let in_sync_rep = |row: &&Backend| row.wait_event.as_deref() == Some("SyncRep");
        let standby = input.backends.iter().filter(in_sync_rep);
        let standby = standby.filter_map(|row| index.number(Party::Backend(row.group()))).collect();
        let mut lists = Self { of: FxHashMap::default(), standby };
        // A statement that goes through a list requests this lock of its table first.
        let may_begin = |queue: &Queue| {
            let mut asking =
                queue.waiters.iter().filter(|waiter| waiter.mode == LockMode::ShareUpdateExclusive);
            asking.any(|waiter| backends.get(&waiter.pid).copied().and_then(concurrently).is_some())
        };
        let is_listed = |queue: &Queue| match queue.tag.locktype() {
            LockType::TransactionId | LockType::VirtualXid | LockType::Tuple => true,
            LockType::Relation => may_begin(queue),
            _ => is_notify(&queue.tag),
        };
        let listed: Vec<(usize, &Queue)> =
            queues.iter().enumerate().filter(|(_, queue)| is_listed(queue)).collect();
        if listed.is_empty() {
            return lists;
        }
        let held = Held::of(input, leaders);
        let candidates = RefCell::default();
        let ground = ListsInput { input, queues, index, backends, held, candidates };
        let mut room = ROOM;
        for (number, queue) in listed {
            let Some(members) = index.members(number) else { continue };
            for (group, waiter) in members.waiters.iter().zip(&queue.waiters) {
                if room == 0 {
                    lists.of.insert(*group, List { unknown: true, ..List::default() });
                    continue;
                }
                let mut list = ground.list(queue, waiter.party, waiter.pid, waiter.mode, &lists.standby);
                list.settle();
                room = room.saturating_sub(list.must.len());
                if list.all().next().is_some() || list.is_open() || list.queue {
                    lists.of.insert(*group, list);
                }
            }
        }
        lists
    }
}

/// Whether it is the server-wide lock that each commit with NOTIFY takes.
fn is_notify(tag: &LockTag) -> bool {
    tag.locktype() == LockType::Object && tag.classid() == Some(PG_DATABASE) && tag.objid() == Some(0)
}

/// The order of transaction ids, which wrap around.
fn xid_order(one: u32, other: u32) -> Ordering {
    one.wrapping_sub(other).cast_signed().cmp(&0)
}

type Candidates = FxHashMap<(Relation, LockModes), Rc<[Party]>>;

struct ListsInput<'a> {
    input: Input<'a>,
    queues: &'a [Queue],
    index: &'a Index,
    backends: FxHashMap<i32, &'a Backend>,
    held: Held,
    /// Possible members of a multixact in a table, by the modes in which they hold the table. The same for all waiters of
    /// its rows.
    candidates: RefCell<Candidates>,
}

impl ListsInput<'_> {
    fn list(
        &self,
        queue: &Queue,
        waiter: Party,
        pid: i32,
        mode: LockMode,
        standby: &FxHashSet<usize>,
    ) -> List {
        let backend = self.backends.get(&pid).copied();
        let holders: Vec<Party> =
            queue.holders.iter().map(|holder| holder.party).filter(|holder| *holder != waiter).collect();
        let is_plain = queue.tag.locktype() == LockType::Relation && mode != LockMode::ShareUpdateExclusive;
        let statement = backend.filter(|_| !is_plain).and_then(|row| Some((row, concurrently(row)?)));
        if let Some((row, how)) = statement {
            return self.lockers(queue, row, how, waiter, &holders);
        }
        match queue.tag.locktype() {
            LockType::TransactionId if backend.is_some_and(creates_slot) => {
                backend.map(|row| self.transactions(queue, row, waiter, &holders)).unwrap_or_default()
            }
            LockType::TransactionId => match self.held.places.get(&waiter).and_then(|places| places.last()) {
                Some((relation, mode)) => {
                    let mut list = self.row(*relation, *mode, waiter, &holders);
                    self.versions(queue, *relation, waiter, &holders, &mut list);
                    list
                }
                None => self.unplaced(queue, waiter, &holders),
            },
            // A session with a hidden statement may be one of those above.
            LockType::VirtualXid => List { unknown: true, ..List::default() },
            LockType::Tuple => self.line(queue, waiter, mode, &holders),
            LockType::Object if is_notify(&queue.tag) => self.notify(backend, &holders, standby),
            _ => List::default(),
        }
    }

    /// Possible members of the multixact of a row that `holders` have. All members but one have only locked the row, which
    /// takes `RowShareLock` on its table; all have a transaction ID. A place in line has a mode for each strength of a row
    /// lock (`tupleLockExtraInfo` in `src/backend/access/heap/heapam.c`).
    fn row(&self, relation: Relation, place: LockMode, waiter: Party, holders: &[Party]) -> List {
        if !matches!(place, LockMode::Exclusive | LockMode::AccessExclusive) {
            // FOR SHARE and FOR KEY SHARE conflict with at most one member.
            return List::default();
        }
        let (locks, writes) = (LockModes::of(LockMode::RowShare), LockModes::of(LockMode::RowExclusive));
        let has_locked = holders.iter().any(|holder| self.held.modes(*holder, relation).intersects(locks));
        let wanted = match (place, has_locked) {
            // FOR KEY SHARE does not block an update that leaves the key unchanged, and only one transaction can have updated the
            // row.
            (LockMode::Exclusive, false) => return self.omitted(),
            (LockMode::Exclusive, true) | (_, false) => locks,
            (_, true) => locks.union(writes),
        };
        let members = self.members(relation, wanted);
        let may = members.iter().copied().filter(|party| *party != waiter && !holders.contains(party));
        List { may: may.take(MOST + 1).collect(), ..self.omitted() }
    }

    /// Other sessions in line for a row of the table that may be a later version of the same row: a row that is locked `FOR
    /// KEY SHARE` may be updated meanwhile, and a session that waited for the old version follows to the new one
    /// (`heap_lock_tuple` in `heapam.c`).
    fn versions(&self, queue: &Queue, relation: Relation, waiter: Party, holders: &[Party], list: &mut List) {
        let locks = LockModes::of(LockMode::RowShare);
        if holders.iter().any(|holder| self.held.modes(*holder, relation).intersects(locks)) {
            list.others_in(queue, waiter, |other| self.has_place(other, relation));
        }
    }

    fn has_place(&self, party: Party, relation: Relation) -> bool {
        self.held.places.get(&party).is_some_and(|places| places.iter().any(|(of, _)| *of == relation))
    }

    fn members(&self, relation: Relation, wanted: LockModes) -> Rc<[Party]> {
        let find = || {
            let members = self.held.relations.get(&relation).into_iter().flatten();
            let may = members.filter(|(party, modes)| {
                modes.intersects(wanted)
                    && self.held.xids.contains_key(party)
                    && !self.is_in_line(*party, relation)
            });
            may.map(|(party, _)| *party).collect()
        };
        Rc::clone(self.candidates.borrow_mut().entry((relation, wanted)).or_insert_with(find))
    }

    /// Whether it is in line for a row of the table, with or without a place.
    fn is_in_line(&self, party: Party, relation: Relation) -> bool {
        let waits = || {
            let group = self.index.number(party)?;
            let (queue, _) = self.index.waits(group).first()?;
            self.queues.get(*queue)
        };
        self.has_place(party, relation)
            || waits().is_some_and(|queue| {
                queue.tag.locktype() == LockType::Tuple && self::relation(&queue.tag) == relation
            })
    }

    /// Unknown if locks that no session waits for were left out.
    fn omitted(&self) -> List {
        List { unknown: self.input.is_partial, ..List::default() }
    }

    /// A waiter for a transaction without a place in line: it inserts a unique key, or has already locked the row itself.
    fn unplaced(&self, queue: &Queue, waiter: Party, holders: &[Party]) -> List {
        let mut list = self.omitted();
        // If several insert one key, the first to continue gets it.
        list.others_in(queue, waiter, |other| !self.held.places.contains_key(&other));
        let row_share = LockModes::of(LockMode::RowShare);
        let own = self.held.relations.keys().filter(|of| self.held.modes(waiter, **of).intersects(row_share));
        if self.held.xids.contains_key(&waiter) {
            for relation in own {
                list.may.extend(self.row(*relation, LockMode::AccessExclusive, waiter, holders).may);
            }
        }
        list
    }

    /// A waiter in line for a row: once it has its place, it waits for the transaction that has the row.
    fn line(&self, queue: &Queue, waiter: Party, mode: LockMode, places: &[Party]) -> List {
        let mut list = self.omitted();
        for first in places {
            let Some(group) = self.index.number(*first) else { continue };
            for (row, _) in self.index.waits(group) {
                let Some(row) =
                    self.queues.get(*row).filter(|row| row.tag.locktype() == LockType::TransactionId)
                else {
                    continue;
                };
                let holders: Vec<Party> = row.holders.iter().map(|holder| holder.party).collect();
                list.may.extend(self.row(relation(&queue.tag), mode, waiter, &holders).may);
                list.must.extend(holders);
            }
        }
        list
    }

    /// The transactions that `CREATE INDEX CONCURRENTLY` and similar statements wait for.
    fn lockers(
        &self,
        queue: &Queue,
        row: &Backend,
        how: Concurrently,
        waiter: Party,
        holders: &[Party],
    ) -> List {
        let mut list = self.omitted();
        // It holds this lock of the table, or requests it.
        let own = LockModes::of(LockMode::ShareUpdateExclusive);
        let asks = queue.tag.locktype() == LockType::Relation;
        let is_own = |(tag, parties): &(&Relation, &Vec<(Party, LockModes)>)| {
            parties.iter().any(|(party, modes)| *party == waiter && modes.intersects(own))
                || asks && **tag == relation(&queue.tag)
        };
        let stops = if how.readers { LockMode::AccessExclusive } else { LockMode::Share };
        let tables = self.held.relations.iter().filter(is_own).flat_map(|(_, parties)| parties);
        let lockers = tables.filter(|(_, modes)| stops.conflicts_with(*modes)).map(|(party, _)| *party);
        let has_snapshot = |other: &&Backend| {
            how.snapshots
                && other.backend_xmin.is_some()
                && other.datid == row.datid
                && Some(other.pid) != self.input.own_pid
        };
        let snapshots =
            self.input.backends.iter().filter(has_snapshot).filter(|other| other.pid == other.group());
        let snapshots = snapshots.filter(|other| !is_vacuum(other)).map(|other| Party::Backend(other.pid));
        for party in lockers.chain(snapshots).filter(|party| *party != waiter && !holders.contains(party)) {
            if asks || self.is_since(party, row) { list.must.push(party) } else { list.may.push(party) }
        }
        list.unknown |= how.locks_again && !asks;
        list.unknown |=
            self.input.backends.iter().any(|other| other.state.is_none() && other.backend_start.is_none());
        list
    }

    /// Whether a session has been idle in its transaction since before the statement of `row` began: it already held then
    /// what it holds now.
    fn is_since(&self, party: Party, row: &Backend) -> bool {
        let idle = |other: &&Backend| other.state.is_some_and(State::is_idle_in_transaction);
        let since =
            self.backends.get(&party.pid()).copied().filter(idle).and_then(|other| other.state_change);
        since.zip(row.query_start).is_some_and(|(since, began)| since < began)
    }

    /// All transactions with an ID: creating a logical slot goes through them twice.
    fn transactions(&self, queue: &Queue, row: &Backend, waiter: Party, holders: &[Party]) -> List {
        let mut list = self.omitted();
        let awaited = queue.tag.transactionid();
        for (party, xids) in
            self.held.xids.iter().filter(|(party, _)| **party != waiter && !holders.contains(party))
        {
            let is_older = awaited
                .is_some_and(|awaited| xids.iter().any(|xid| xid_order(*xid, awaited) == Ordering::Less));
            if is_older || self.is_since(*party, row) {
                list.must.push(*party);
            } else {
                list.may.push(*party);
            }
        }
        list
    }

    /// A commit with NOTIFY behind one that waits for a standby: it has to wait for the standby too, if the same settings
    /// apply to it.
    fn notify(&self, backend: Option<&Backend>, holders: &[Party], standby: &FxHashSet<usize>) -> List {
        let stuck = |party: &&Party| self.index.number(**party).is_some_and(|group| standby.contains(&group));
        let Some(first) = holders.iter().find(stuck) else { return List::default() };
        let settings = |row: &Backend| (row.usesysid, row.datid);
        let same = self.backends.get(&first.pid()).copied().map(settings) == backend.map(settings);
        List { standby: same, unknown: !same, ..List::default() }
    }
}
