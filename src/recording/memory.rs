use std::sync::Arc;

use super::cell::sorted;
use super::columns::{columns, flat_rows, parts, tuples};
use super::strings::{Decoded, Strings};
use crate::model::backend::Backend;
use crate::model::finding::deadlocks::{Broken, DeadlockCount, SeenCycle, Victims};
use crate::model::finding::{Deadlocks, NewRoots};
use crate::model::held::{HeldLocks, HeldSince, HeldWatch, SessionActivity};
use crate::model::lock::{LockMode, LockTag};
use crate::model::lock_waits::{LockWaits, WaitCounter, WaitedLock, waited_rows};
use crate::model::past::GraphFrom;
use crate::model::refusals::Refusals;
use crate::model::snapshot::Epoch;
use crate::model::task::{KeyHolder, TaskWatch};
use crate::model::view::{Sample, Series};
use crate::model::wait_graph::{Answer, Party};
use crate::model::{Text, Timestamp};
use crate::text::one_line;

waited_rows!(columns);

columns! {
    /// Times of locks that are held.
    Sinces of HeldSince { 1 proved: Timestamp, 2 seen: Timestamp, }
    /// Values that must be unchanged.
    Epochs of Epoch { 1 own_pid: i32, 2 started_at: Option<Timestamp>, 3 in_recovery: bool, }
    /// The server's count of deadlocks.
    Counteds of DeadlockCount {
        1 at: Timestamp,
        2 deadlocks: u64,
        3 databases: Arc<[u32]>,
        4 started_at: Option<Timestamp>,
    }
    Cycles of SeenCycle { 1 parties: Vec<Party>, 2 texts: Vec<Text>, 3 at: Timestamp, }
    /// Waiting sessions in each snapshot.
    Samples of Sample { 1 at: Timestamp, 2 waiting: u32, }
}

flat_rows! {
    /// The state of a holder, and when it began.
    Holders of Holder {
        1 pid: i32,
        2 backend_start: Option<Timestamp>,
        3 xact_start: Option<Timestamp>,
        4 state_change: Option<Timestamp>,
        5 start: Option<Timestamp>,
    }
    /// A deadlock with its victims beside it.
    Brokens of FlatBroken {
        1 at: Timestamp,
        2 since: Timestamp,
        3 rise: u64,
        4 has_victims: bool,
        5 parties: Vec<Party>,
        6 said: Vec<Text>,
    }
}

tuples! {
    /// A lock of [`HeldLocks`].
    HeldKeys of ((i32, u32, u32, u32, u16), u32) as ((pid, database, classid, objid, objsubid), time) {
        1 pid: i32,
        2 database: u32,
        3 classid: u32,
        4 objid: u32,
        5 objsubid: u16,
        6 time: u32,
    }
    /// An execution whose key was free.
    Frees of ((u32, i64), Timestamp) as ((table, id), since) {
        1 table: u32,
        2 id: i64,
        3 since: Timestamp,
    }
    /// An execution whose key somebody held.
    Seens of ((u32, i64), KeyHolder) as ((table, id), KeyHolder { pid, start, tied, ended }) {
        1 table: u32,
        2 id: i64,
        3 pid: i32,
        4 start: Option<Timestamp>,
        5 tied: bool,
        6 ended: bool,
    }
    /// A key that was held for nothing.
    Idles of ((i32, i64), Timestamp) as ((pid, key), since) {
        1 pid: i32,
        2 key: i64,
        3 since: Timestamp,
    }
    /// Roots, and since when they are roots.
    Roots of (Party, Option<Timestamp>) as (party, since) {
        1 party: Party,
        2 since: Option<Timestamp>,
    }
    /// A wait that goes on, and how much of it has been counted, in seconds.
    Waits of ((i32, Timestamp), f64) as ((pid, start), seconds) {
        1 pid: i32,
        2 start: Timestamp,
        3 seconds: f64,
    }
}

parts! {
    /// Since when advisory locks are held.
    Held {
        1 keys: ((i32, u32, u32, u32, u16), u32),
        2 times: HeldSince,
        3 holders: Holder,
    }
    /// Keys, deadlocks and roots.
    Marks (9 has_looked: bool bool) {
        1 epoch: Epoch,
        2 free: ((u32, i64), Timestamp),
        3 seen: ((u32, i64), KeyHolder),
        4 idle: ((i32, i64), Timestamp),
        5 counted: DeadlockCount,
        6 cycles: SeenCycle,
        7 broken: FlatBroken,
        8 roots: (Party, Option<Timestamp>),
    }
    /// Waits that were counted.
    WaitTable (3 forgotten: uint64 u64) {
        1 since: Option<Timestamp>,
        2 locks: WaitedLock,
        4 going_on: ((i32, Timestamp), f64),
    }
    Minutes {
        1 samples: Sample,
        2 waiting_since: Option<Timestamp>,
        3 refusals: Refusals,
    }
    /// Input of the graph other than the locks, if the locks are older than the snapshot.
    NextTo {
        1 backends: Backend,
        2 answers: Answer,
    }
}

pub(super) fn of_held(held: &HeldWatch, strings: &mut Strings) -> Held {
    let mut holders: Vec<Holder> = held
        .holders
        .iter()
        .map(|(pid, doing)| Holder {
            pid: *pid,
            backend_start: doing.map(|doing| doing.backend_start),
            xact_start: doing.and_then(|doing| doing.xact_start),
            state_change: doing.and_then(|doing| doing.state_change),
            // The start is needed for holders only.
            start: held.starts.get(pid).copied(),
        })
        .collect();
    holders.sort_unstable_by_key(|holder| holder.pid);
    Held::of((&held.since.keys, &held.since.times, &holders), strings)
}

pub(super) fn held(kept: &Held, strings: &Decoded) -> HeldWatch {
    let (keys, times, holders) = kept.rows(strings);
    let starts = holders.iter().filter_map(|holder| Some((holder.pid, holder.start?))).collect();
    let doing = |holder: &Holder| {
        let doing = holder.backend_start.map(|backend_start| SessionActivity {
            backend_start,
            xact_start: holder.xact_start,
            state_change: holder.state_change,
        });
        (holder.pid, doing)
    };
    let (since, holders) = (Arc::new(HeldLocks { keys, times }), holders.iter().map(doing).collect());
    HeldWatch { since, locks: Arc::default(), holders, starts }
}

pub(super) fn of_marks(
    watch: &TaskWatch,
    deadlocks: &Deadlocks,
    new_roots: &NewRoots,
    strings: &mut Strings,
) -> Marks {
    let broken = deadlocks.broken.iter().map(|broken| {
        let Victims { parties, texts: said } =
            broken.victims.clone().unwrap_or(Victims { parties: Vec::new(), texts: Vec::new() });
        let Broken { at, since, rise, .. } = *broken;
        FlatBroken { at, since, rise, has_victims: broken.victims.is_some(), parties, said }
    });
    let columns = (
        watch.epoch.as_slice(),
        &*sorted(&watch.free),
        &*sorted(&watch.seen),
        &*sorted(&watch.idle),
        deadlocks.counted.as_slice(),
        &*deadlocks.cycles,
        &*broken.collect::<Vec<_>>(),
        &*sorted(&new_roots.since),
    );
    Marks::of(columns, new_roots.has_observed, strings)
}

pub(super) fn marks(kept: &Marks, strings: &Decoded) -> (TaskWatch, Deadlocks, NewRoots) {
    let (mut epoch, free, seen, idle, mut counted, cycles, broken, roots) = kept.rows(strings);
    let watch = TaskWatch {
        epoch: epoch.pop(),
        free: free.into_iter().collect(),
        seen: seen.into_iter().collect(),
        idle: idle.into_iter().collect(),
    };
    let broken = broken.into_iter().map(|flat| {
        let FlatBroken { at, since, rise, has_victims, parties, said } = flat;
        let said = harmless(&said);
        Broken { at, since, rise, victims: has_victims.then_some(Victims { parties, texts: said }) }
    });
    let deadlocks = Deadlocks {
        counted: counted.pop(),
        cycles: cycles
            .into_iter()
            .map(|cycle| SeenCycle { texts: harmless(&cycle.texts), ..cycle })
            .collect(),
        broken: broken.collect(),
    };
    let since = roots.into_iter().collect();
    (watch, deadlocks, NewRoots { since, has_observed: kept.has_looked })
}

/// Makes the texts that findings show unchanged safe for a screen, because the file is not trusted.
fn harmless(said: &[Text]) -> Vec<Text> {
    said.iter().map(|text| one_line(text).into()).collect()
}

pub(super) fn of_waits(waits: &WaitCounter, strings: &mut Strings) -> WaitTable {
    let going_on = waits.going_on.iter();
    let mut going_on: Vec<_> = going_on.map(|(wait, counted)| (*wait, counted.seconds)).collect();
    going_on.sort_unstable_by_key(|(wait, _)| *wait);
    let LockWaits { since, locks, forgotten } = &*waits.waits;
    WaitTable::of((&[*since], locks, &going_on), *forgotten, strings)
}

pub(super) fn waits(kept: &WaitTable, strings: &Decoded) -> WaitCounter {
    let (mut since, locks, going_on) = kept.rows(strings);
    let table = LockWaits { since: since.pop().flatten(), locks, forgotten: kept.forgotten };
    WaitCounter::restored(table, going_on)
}

pub(super) fn of_series(series: &Series, strings: &mut Strings) -> Minutes {
    Minutes::of((&series.samples, &[series.waiting_since], &series.refusals), strings)
}

pub(super) fn series(kept: &Minutes, strings: &Decoded) -> Series {
    let (samples, mut since, refusals) = kept.rows(strings);
    Series { samples, waiting_since: since.pop().flatten(), refusals }
}

pub(super) fn of_graph_from(graph: &GraphFrom, strings: &mut Strings) -> NextTo {
    NextTo::of((&graph.backends, &graph.answers), strings)
}

pub(super) fn graph_from(kept: &NextTo, strings: &Decoded) -> GraphFrom {
    let (backends, answers) = kept.rows(strings);
    GraphFrom { backends: Arc::new(backends), answers }
}
