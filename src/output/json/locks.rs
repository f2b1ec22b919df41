//! All advisory locks, and all locks that take part in a wait; the wait graph by process id, in which a prepared
//! transaction has the id 0 and a gid; and what waiting has cost.

use rustc_hash::{FxHashMap, FxHashSet};

use super::object::{self, Json, JsonObject, Writer, object};
use super::{gid, readable};
use crate::model::Timestamp;
use crate::model::blame::{self, BlameGrouping, BlamePeriod};
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::normal_wait::NormalWait;
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::model::wait_graph::{Edge, EdgeKind, Party, WaitGraph};
use crate::model::words;
use crate::order::SortExt;

pub(super) struct LocksJson<'a> {
    snapshot: &'a Snapshot,
    rows: Vec<&'a Lock>,
    places: FxHashMap<usize, usize>,
}

impl<'a> LocksJson<'a> {
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

    pub(super) fn written(&self, view: &View) -> impl Iterator<Item = impl Json> {
        self.rows.iter().map(move |lock| {
            let tag = lock.tag;
            let holder = lock.pid.and_then(|pid| view.index.backend(self.snapshot, pid));
            let name = words::lock_name(self.snapshot, &view.lock_names, &tag, holder);
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
                name = name.as_ref().map(ToString::to_string),
                mode, granted, pid,
                gid = match lock.pid {
                    Some(_) => None,
                    None => gid(view, Party::Prepared(lock.virtualtransaction)),
                },
                virtualtransaction = lock.virtualtransaction.to_string(),
                wait_start,
            )
        })
    }
}

pub(super) fn queues(graph: &WaitGraph, locks: &LocksJson<'_>) -> impl Iterator<Item = impl Json> {
    graph.queues.iter().map(move |queue| {
        object!(
            lock = queue.waiters.first().and_then(|waiter| locks.place(waiter.lock)),
            holders[] = queue.holders.iter().map(|holder| holder.party.pid()),
            waiters[] = queue.waiters.iter().map(|waiter| waiter.party.pid()),
        )
    })
}

pub(super) fn edge(edge: &Edge, locks: &LocksJson<'_>, view: &View) -> impl Json {
    object!(
        edge;
        waiter = edge.waiter.pid(),
        blocker = edge.blocker.pid(),
        gid = gid(view, edge.blocker),
        kind = match edge.kind {
            EdgeKind::Holder => "holder",
            EdgeKind::Queue => "queue",
        },
        lock = locks.place(edge.lock),
        inferred,
    )
}

pub(super) fn roots(view: &View, graph: &WaitGraph, now: Timestamp) -> impl Iterator<Item = impl Json> {
    graph.roots.iter().map(move |root| {
        object!(
            root;
            pid = root.party.pid(),
            gid = gid(view, root.party),
            blocked, frees, in_turn, still_blocked, may_stay_blocked, others_must_end,
            longest_wait = root.longest_wait.map(|since| (now - since).as_seconds_f64().max(0.0)),
            normal_wait = view.normal_wait(root.party).map(NormalWait::as_str),
        )
    })
}

/// Waits that locktop has seen since it started, together with waits that were counted independently of locktop.
pub(super) fn lock_waits(view: &View, snapshot: &Snapshot) -> impl Json {
    let waits = &*view.lock_waits;
    object!(
        waits;
        since,
        locks[] = waits.locks.iter().map(|lock| object!(
            lock;
            ..locked(snapshot, &lock.tag, &lock.name),
            waiting, waits, total, longest, longest_mode,
            first_seen = lock.first,
            last_seen = lock.last,
        )),
        forgotten,
        counted[] = snapshot.sources.contended.iter().flat_map(|table| {
            readable(&table.section).iter().map(move |row| object!(
                row;
                table = table.source.name,
                ..locked(snapshot, &row.tag, &crate::model::lock_waits::name(snapshot, &view.lock_names, None, &row.tag)),
                waits, total, longest, longest_mode,
                first_seen = row.first,
                last_seen = row.last,
            ))
        }),
    )
}

fn locked(
    snapshot: &Snapshot,
    tag: &LockTag,
    name: &str,
) -> JsonObject<impl Fn(&mut Writer) -> object::Result> {
    let names = &snapshot.names;
    object!(
        name = name,
        locktype = tag.locktype(),
        database = tag.database(),
        database_name = tag.database().and_then(|oid| names.databases.get(&oid)),
        relation = tag.relation(),
        relation_name = names.relation(tag),
        key = tag.advisory_key(),
    )
}

pub(super) fn workers(view: &View, snapshot: &Snapshot) -> impl Iterator<Item = impl Json> {
    let rows = snapshot
        .sources
        .workers
        .iter()
        .flat_map(|table| readable(&table.section).iter().map(|worker| (&table.source.name, worker)));
    rows.filter(|(_, worker)| worker.lives(snapshot, &view.index)).map(|(table, worker)| {
        let takes = [("tasks", worker.takes_tasks), ("queue", worker.takes_items)];
        object!(
            worker;
            table = table,
            worker_id = worker.name,
            pid,
            backend_start = worker.start,
            takes[] = takes.iter().filter(|(_, takes)| *takes).map(|(name, _)| *name),
            types = worker.types(),
            announced_at,
        )
    })
}

/// Maximum roots written, the most expensive first.
const ROOTS: usize = 50;

/// Maximum episodes written: those that continue, and the most expensive of the others.
const EPISODES: usize = 50;

/// `None` with a single snapshot: waiting is measured between two.
pub(in crate::output) fn blame(blame: &blame::Blame) -> Option<impl Json> {
    let (since, until) = blame.since.zip(blame.until).filter(|_| blame.polls > 1)?;
    let total = blame.total(BlamePeriod::All);
    let rows = blame.by(BlameGrouping::Root, BlamePeriod::All);
    let told = rows.iter().filter(|row| !row.keys.is_empty()).count();
    let mut episodes: Vec<&blame::Episode> = blame.episodes_in(BlamePeriod::All).collect();
    let count = episodes.len();
    episodes.order_by(|a, b| {
        let rank = |one| (blame.is_ongoing(one), one.sums.seconds);
        let ((a_on, a_cost), (b_on, b_cost)) = (rank(a), rank(b));
        b_on.cmp(&a_on).then(b_cost.total_cmp(&a_cost))
    });
    episodes.truncate(EPISODES);
    episodes.order_by_key(|episode| episode.number);
    Some(object!(
        total;
        span = (until - since).as_seconds_f64(),
        since = since,
        until = until,
        not_seen = blame.missing,
        before = before(blame.before),
        seconds,
        standard_error = total.standard_error(),
        waits,
        by_root[] = rows.iter().filter(|row| !row.keys.is_empty()).take(ROOTS).map(|row| root(row, total.seconds)),
        by_root_omitted = (told.saturating_sub(ROOTS) as u64).saturating_add(blame.table.other_keys),
        episodes[] = episodes.iter().map(|one| episode(blame, one)),
        episodes_omitted = (count.saturating_sub(EPISODES) as u64).saturating_add(blame.table.forgotten.0),
    ))
}

/// Sessions that already waited at the first snapshot.
fn before(before: blame::WaitsBefore) -> impl Json {
    object!(before; sessions, longest, seconds)
}

fn root(row: &blame::BlameRow, total: f64) -> Option<impl Json> {
    let (key, sums) = (row.keys.first()?, &row.sums);
    Some(object!(
        key;
        application, role, database, doing, statement, lock,
        query_tag = key.tag,
        seconds = sums.seconds,
        standard_error = sums.standard_error(),
        share = if total > 0.0 { sums.seconds / total } else { 0.0 },
        waits = sums.waits,
        most = sums.most,
        episodes = row.episodes,
    ))
}

fn episode(blame: &blame::Blame, episode: &blame::Episode) -> impl Json {
    let sums = &episode.sums;
    object!(
        episode;
        number, pid, backend_start, xact_start, who, lock, begin, last,
        goes_on = blame.is_ongoing(episode),
        seconds = sums.seconds,
        standard_error = sums.standard_error(),
        waits = sums.waits,
        most = sums.most,
        ending, note,
        ran[] = episode.ran.iter().map(|ran| {
            object!(ran; at, statement, in_line = Some(ran.in_line).filter(|pid| *pid != 0))
        }),
    )
}
