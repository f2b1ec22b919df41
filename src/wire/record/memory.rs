use std::sync::Arc;

use super::activity;
use super::cell::{Cell, column, rows};
use super::columns::{columns, flat_rows, lists};
use super::schema_rows::RefusalRows;
use super::strings::{Decoded, Strings};
use crate::model::finding::deadlocks::{Broken, Counted, SeenCycle, Victims};
use crate::model::finding::{Deadlocks, NewRoots};
use crate::model::held::{HeldLocks, HeldSince};
use crate::model::held_watch::{Doing, HeldWatch};
use crate::model::lock::{LockMode, LockTag};
use crate::model::lock_waits::{LockWaits, WaitCounter, WaitedLock};
use crate::model::past::GraphFrom;
use crate::model::task::{Epoch, KeyHolder, Watch};
use crate::model::view::{Sample, Series};
use crate::model::wait_graph::Party;
use crate::model::{Text, Timestamp};
use crate::text::one_line;

columns! {
    /// Times of locks that are held.
    Sinces of HeldSince {
        1 proved: Timestamp,
        2 seen: Timestamp,
    }
    /// Values that must be unchanged.
    Epochs of Epoch {
        1 own_pid: i32,
        2 started_at: Option<Timestamp>,
        3 in_recovery: bool,
    }
    /// The server's count of deadlocks.
    Counteds of Counted {
        1 at: Timestamp,
        2 deadlocks: u64,
        3 databases: Arc<[u32]>,
        4 started_at: Option<Timestamp>,
    }
    Cycles of SeenCycle {
        1 parties: Vec<Party>,
        2 said: Vec<Text>,
        3 at: Timestamp,
    }
    /// Locks that were waited for.
    Waiteds of WaitedLock {
        1 tag: LockTag,
        2 name: Text,
        3 waits: u64,
        4 total: f64,
        5 longest: f64,
        6 longest_mode: LockMode,
        7 waiting: u32,
        8 first: Timestamp,
        9 last: Timestamp,
    }
    /// Waiting sessions at each look.
    Samples of Sample {
        1 at: Timestamp,
        2 waiting: u32,
    }
}

flat_rows! {
    /// A lock of [`HeldLocks`].
    HeldKeys of HeldKey {
        1 pid: i32,
        2 database: u32,
        3 classid: u32,
        4 objid: u32,
        5 objsubid: u16,
        6 time: u32,
    }
    /// The state of a holder, and when it began.
    Holders of Holder {
        1 pid: i32,
        2 backend_start: Option<Timestamp>,
        3 xact_start: Option<Timestamp>,
        4 state_change: Option<Timestamp>,
        5 start: Option<Timestamp>,
    }
    /// An execution whose key was free.
    Frees of Free {
        1 table: u32,
        2 id: i64,
        3 since: Timestamp,
    }
    /// An execution whose key somebody held.
    Seens of SeenHolder {
        1 table: u32,
        2 id: i64,
        3 pid: i32,
        4 start: Option<Timestamp>,
        5 tied: bool,
        6 ended: bool,
    }
    /// A key that was held for nothing.
    Idles of IdleKey {
        1 pid: i32,
        2 key: i64,
        3 since: Timestamp,
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
    /// Roots, and since when they are roots.
    Roots of NewRoot {
        1 party: Party,
        2 since: Option<Timestamp>,
    }
    /// A wait that goes on, and how much of it has been counted, in seconds.
    Waits of Wait {
        1 pid: i32,
        2 start: Timestamp,
        3 seconds: f64,
    }
}

lists! {
    /// Parties that wait for each other.
    PartyLists of Party;
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Held {
    #[prost(message, required, tag = 1)]
    keys: HeldKeys,
    #[prost(message, required, tag = 2)]
    times: Sinces,
    #[prost(message, required, tag = 3)]
    holders: Holders,
}

pub(super) fn of_held(held: &HeldWatch, strings: &mut Strings) -> Held {
    let keys = held.since.keys.iter();
    let keys = keys.map(|((pid, database, classid, objid, objsubid), time)| HeldKey {
        pid: *pid,
        database: *database,
        classid: *classid,
        objid: *objid,
        objsubid: *objsubid,
        time: *time,
    });
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
    Held {
        keys: column(&keys.collect::<Vec<_>>(), strings),
        times: column(&held.since.times, strings),
        holders: column(&holders, strings),
    }
}

pub(super) fn held(kept: &Held, strings: &Decoded) -> HeldWatch {
    let keys = rows::<HeldKey>(&kept.keys, strings).into_iter();
    let since = HeldLocks {
        keys: keys
            .map(|key| ((key.pid, key.database, key.classid, key.objid, key.objsubid), key.time))
            .collect(),
        times: rows(&kept.times, strings),
    };
    let holders: Vec<Holder> = rows(&kept.holders, strings);
    let starts = holders.iter().filter_map(|holder| Some((holder.pid, holder.start?))).collect();
    let doing = |holder: &Holder| {
        let doing = holder.backend_start.map(|backend_start| Doing {
            backend_start,
            xact_start: holder.xact_start,
            state_change: holder.state_change,
        });
        (holder.pid, doing)
    };
    HeldWatch::restored(since, holders.iter().map(doing).collect(), starts)
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Marks {
    #[prost(message, required, tag = 1)]
    epoch: Epochs,
    #[prost(message, required, tag = 2)]
    free: Frees,
    #[prost(message, required, tag = 3)]
    seen: Seens,
    #[prost(message, required, tag = 4)]
    idle: Idles,
    #[prost(message, required, tag = 5)]
    counted: Counteds,
    #[prost(message, required, tag = 6)]
    cycles: Cycles,
    #[prost(message, required, tag = 7)]
    broken: Brokens,
    #[prost(message, required, tag = 8)]
    roots: Roots,
    #[prost(bool, tag = 9)]
    has_looked: bool,
}

pub(super) fn of_marks(
    watch: &Watch,
    deadlocks: &Deadlocks,
    new_roots: &NewRoots,
    strings: &mut Strings,
) -> Marks {
    let free = watch.free.iter();
    let mut free: Vec<_> =
        free.map(|((table, id), since)| Free { table: *table, id: *id, since: *since }).collect();
    free.sort_unstable_by_key(|row| (row.table, row.id));
    let seen = watch.seen.iter().map(|((table, id), seen)| {
        let KeyHolder { pid, start, tied, ended } = *seen;
        SeenHolder { table: *table, id: *id, pid, start, tied, ended }
    });
    let mut seen: Vec<_> = seen.collect();
    seen.sort_unstable_by_key(|row| (row.table, row.id));
    let idle = watch.idle.iter();
    let mut idle: Vec<_> =
        idle.map(|((pid, key), since)| IdleKey { pid: *pid, key: *key, since: *since }).collect();
    idle.sort_unstable_by_key(|row| (row.pid, row.key));
    let mut roots: Vec<_> =
        new_roots.since.iter().map(|(party, since)| NewRoot { party: *party, since: *since }).collect();
    roots.sort_unstable_by_key(|root| root.party);
    let broken = deadlocks.broken.iter().map(|broken| {
        let Victims { parties, said } =
            broken.victims.clone().unwrap_or(Victims { parties: Vec::new(), said: Vec::new() });
        let Broken { at, since, rise, .. } = *broken;
        FlatBroken { at, since, rise, has_victims: broken.victims.is_some(), parties, said }
    });
    Marks {
        epoch: column(watch.epoch.as_slice(), strings),
        free: column(&free, strings),
        seen: column(&seen, strings),
        idle: column(&idle, strings),
        counted: column(deadlocks.counted.as_slice(), strings),
        cycles: column(&deadlocks.cycles, strings),
        broken: column(&broken.collect::<Vec<_>>(), strings),
        roots: column(&roots, strings),
        has_looked: new_roots.has_looked,
    }
}

pub(super) fn marks(kept: &Marks, strings: &Decoded) -> (Watch, Deadlocks, NewRoots) {
    let free = rows::<Free>(&kept.free, strings).into_iter();
    let seen = rows::<SeenHolder>(&kept.seen, strings).into_iter().map(|row| {
        let SeenHolder { table, id, pid, start, tied, ended } = row;
        ((table, id), KeyHolder { pid, start, tied, ended })
    });
    let idle = rows::<IdleKey>(&kept.idle, strings).into_iter();
    let watch = Watch {
        epoch: rows(&kept.epoch, strings).pop(),
        free: free.map(|row| ((row.table, row.id), row.since)).collect(),
        seen: seen.collect(),
        idle: idle.map(|row| ((row.pid, row.key), row.since)).collect(),
    };
    let broken = rows::<FlatBroken>(&kept.broken, strings).into_iter().map(|flat| {
        let FlatBroken { at, since, rise, has_victims, parties, said } = flat;
        let said = harmless(&said);
        Broken { at, since, rise, victims: has_victims.then_some(Victims { parties, said }) }
    });
    let deadlocks = Deadlocks {
        counted: rows(&kept.counted, strings).pop(),
        cycles: rows::<SeenCycle>(&kept.cycles, strings)
            .into_iter()
            .map(|cycle| SeenCycle { said: harmless(&cycle.said), ..cycle })
            .collect(),
        broken: broken.collect(),
    };
    let roots = rows::<NewRoot>(&kept.roots, strings).into_iter();
    let since = roots.map(|root| (root.party, root.since)).collect();
    (watch, deadlocks, NewRoots { since, has_looked: kept.has_looked })
}

/// Makes the texts that findings show unchanged safe for a screen, because the file is not trusted.
fn harmless(said: &[Text]) -> Vec<Text> {
    said.iter().map(|text| one_line(text).into()).collect()
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WaitTable {
    #[prost(message, required, tag = 1)]
    since: <Option<Timestamp> as Cell>::Column,
    #[prost(message, required, tag = 2)]
    locks: Waiteds,
    #[prost(uint64, tag = 3)]
    forgotten: u64,
    #[prost(message, required, tag = 4)]
    going_on: Waits,
}

pub(super) fn of_waits(waits: &WaitCounter, strings: &mut Strings) -> WaitTable {
    let going_on = waits.going_on.iter();
    let mut going_on: Vec<_> = going_on
        .map(|((pid, start), counted)| Wait { pid: *pid, start: *start, seconds: counted.seconds })
        .collect();
    going_on.sort_unstable_by_key(|wait| (wait.pid, wait.start));
    WaitTable {
        since: column(&[waits.waits.since], strings),
        locks: column(&waits.waits.locks, strings),
        forgotten: waits.waits.forgotten,
        going_on: column(&going_on, strings),
    }
}

pub(super) fn waits(kept: &WaitTable, strings: &Decoded) -> WaitCounter {
    let table = LockWaits {
        since: rows::<Option<Timestamp>>(&kept.since, strings).pop().flatten(),
        locks: rows(&kept.locks, strings),
        forgotten: kept.forgotten,
    };
    let going_on = rows::<Wait>(&kept.going_on, strings).into_iter();
    WaitCounter::restored(table, going_on.map(|wait| ((wait.pid, wait.start), wait.seconds)))
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Minutes {
    #[prost(message, required, tag = 1)]
    samples: Samples,
    #[prost(message, required, tag = 2)]
    waiting_since: <Option<Timestamp> as Cell>::Column,
    #[prost(message, required, tag = 3)]
    refusals: RefusalRows,
}

pub(super) fn of_series(series: &Series, strings: &mut Strings) -> Minutes {
    Minutes {
        samples: column(&series.samples, strings),
        waiting_since: column(&[series.waiting_since], strings),
        refusals: column(&series.refusals, strings),
    }
}

pub(super) fn series(kept: &Minutes, strings: &Decoded) -> Series {
    let since = rows::<Option<Timestamp>>(&kept.waiting_since, strings).pop();
    Series {
        samples: rows(&kept.samples, strings),
        waiting_since: since.flatten(),
        refusals: rows(&kept.refusals, strings),
    }
}

/// Input of the graph other than the locks, if the locks are older than the snapshot.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Beside {
    #[prost(message, required, tag = 1)]
    backends: activity::Backends,
    #[prost(message, required, tag = 2)]
    answers: activity::Answers,
}

pub(super) fn of_graph_from(graph: &GraphFrom, strings: &mut Strings) -> Beside {
    Beside { backends: column(&graph.backends, strings), answers: column(&graph.answers, strings) }
}

pub(super) fn graph_from(kept: &Beside, strings: &Decoded) -> GraphFrom {
    GraphFrom { backends: Arc::new(rows(&kept.backends, strings)), answers: rows(&kept.answers, strings) }
}
