//! Locks that are held: those that no session waits for, and all advisory locks.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::backends::{self, several_databases};
use super::cell::{age_words, fit_names, lock_age, party};
use super::column::{DB, PID, QUERY, Rows, TYPE_HELP, WHO};
use super::definition::{Basis, Fact, PaneDefinition};
use super::{Cell, LockOwner, Row, RowId, SortValue, Total};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::lock::{Lock, LockMode, LockTag, LockType};
use crate::model::namespace::WORKERS;
use crate::order::SortExt;
use crate::text;

struct HeldRows;

impl Rows for HeldRows {
    type Row<'a> = &'a Lock;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<&'a Lock> {
        context.snapshot.locks.last_rows().get(row.at()?)
    }

    fn id(context: &Context<'_>, lock: &Lock) -> Option<RowId> {
        let owner = match lock.pid {
            Some(pid) => LockOwner::Backend(context.view.backend_id(pid)),
            None => LockOwner::Prepared(lock.virtualtransaction),
        };
        Some(RowId::Lock(lock.tag, owner, lock.mode))
    }
}

type Column = super::Column<HeldRows>;

static COLUMNS: &[Column] = &[
    name(),
    Column::text(("TYPE", "type", TYPE_HELP), (8, 13), |lock, _| Some(lock.tag.locktype().as_str())).rank(5),
    mode((9, 20)),
    pid(),
    Column::cell(WHO, (10, 24), |lock, context, room| who(context, lock, room)).rank(1),
    age((8, 11)),
    Column::text(DB, (6, 12), |lock, context| database(context, &lock.tag))
        .rank(4)
        .only_where(several_databases),
    key().rank(3),
    Column::statement(QUERY, (8, 0), |lock, context| context.backend(lock.pid?)?.query.as_ref()).rank(6),
    Column::age(("HELD", "held", HELD_HELP), (6, 6), Tone::Plain, |lock, context| seconds(context, lock))
        .only_in_filters(),
];

static ADVISORY_COLUMNS: &[Column] = &[
    name(),
    mode((4, 9)),
    pid(),
    Column::cell(("OWNER", "who", WHO.2), (10, 24), |lock, context, room| who(context, lock, room)),
    age((11, 11)),
    Column::number(
        ("WAITERS", "waiters", "sessions that wait for this lock"),
        (7, 7),
        Tone::Warning,
        |lock, context| waiters(context, lock),
    ),
    key().rank(2),
    Column::text(DB, (6, 12), |lock, context| database(context, &lock.tag))
        .rank(3)
        .only_where(several_databases),
    Column::sorted(
        ("STATE", "holder", "the state of the session that holds it"),
        (12, 0),
        |lock, context, _| backends::root_state(context, party(lock), 40),
        |lock, context| backends::state_value(context, party(lock)),
    ),
];

const HELD_HELP: &str = "how long it has been held";

const fn name() -> Column {
    let words = ("NAME", "lock", "the locked object; for an advisory lock the name of its key");
    Column::cell(words, (20, 40), |lock, context, room| label(context, lock, room))
}

const fn mode(width: (u16, u16)) -> Column {
    let words = ("MODE", "mode", "the lock mode; advisory: X exclusive, S shared");
    Column::sorted(
        words,
        width,
        |lock, _, room| short_mode(lock, room),
        |lock, _| SortValue::text(Some(lock.mode.as_str())),
    )
}

const fn pid() -> Column {
    Column::sorted(
        PID,
        (8, 8),
        |lock, _, _| lock.pid.map_or_else(|| Cell::plain("prepared"), |pid| Cell::plain(pid.to_string())),
        |lock, _| SortValue::whole(lock.pid.map(i64::from)),
    )
}

const fn age(width: (u16, u16)) -> Column {
    Column::sorted(
        ("HELD", "age", HELD_HELP),
        width,
        |lock, context, room| age_cell(context, lock, room),
        |lock, context| SortValue::number(seconds(context, lock)),
    )
    .right()
}

const fn key() -> Column {
    Column::cell(("KEY", "key", "the advisory key: one number, or two"), (12, 22), |lock, _, _| {
        lock.tag.advisory_key().map_or_else(Cell::none, |key| Cell::toned(key.to_string(), Tone::Dim))
    })
}

pub(super) static PANE: PaneDefinition = PaneDefinition {
    order: by_queue,
    basis: Basis::Locks,
    prefers_names: true,
    advisory_title: Some("Advisory held, not waited for"),
    empty: "no other advisory lock is held; a shows all types",
    facts,
    name: |context, id| match id {
        RowId::Lock(tag, ..) => {
            format!("Lock on {}", context.lock_label(&tag, crate::app::subject::pid_of(id)))
        }
        _ => String::new(),
    },
    detail: |context, id, width| match id {
        RowId::Lock(tag, ..) => super::locks::lines(context, &tag, width),
        _ => None,
    },
    ..PaneDefinition::new(("Held, not waited for", "a lock of a session"), &COLUMNS, |context, wanted| {
        let awaited: FxHashSet<&LockTag> = context.view.graph.queues.iter().map(|queue| &queue.tag).collect();
        rows(context, |lock| (wanted.all_locks || is_advisory(lock)) && !awaited.contains(&lock.tag))
    })
};

pub(super) static ADVISORY: PaneDefinition = PaneDefinition {
    order: by_queue,
    basis: Basis::Locks,
    empty: "no advisory locks held",
    facts: advisory_facts,
    ..PaneDefinition::new(("Advisory", "a lock of a session"), &ADVISORY_COLUMNS, |context, _| {
        rows(context, is_advisory)
    })
};

fn is_advisory(lock: &Lock) -> bool {
    lock.tag.locktype() == LockType::Advisory
}

/// The title: `34 held · 2 waiting`.
fn advisory_facts(context: &Context<'_>, total: Total) -> Vec<Fact> {
    let queues = context.view.graph.queues.iter().filter(|queue| queue.tag.locktype() == LockType::Advisory);
    let waiting: usize = queues.map(|queue| queue.waiters.len()).sum();
    let tone = if waiting > 0 { Tone::Warning } else { Tone::Plain };
    vec![
        (format!("{} held", text::count(total.rows as u64)), Tone::Plain),
        (format!("{} waiting", text::count(waiting as u64)), tone),
    ]
}

/// `33`, or `1,204 of all types`.
fn facts(context: &Context<'_>, total: Total) -> Vec<Fact> {
    let rows = text::count(total.rows as u64);
    let rows = if total.all_locks { format!("{rows} of all types") } else { rows };
    let mut facts = vec![(rows, Tone::Plain)];
    if context.snapshot.locks_omitted > 0 {
        let omitted = text::count(context.snapshot.locks_omitted);
        facts.push((format!("{omitted} uncontended ones not read"), Tone::Warning));
    }
    facts
}

fn rows(context: &Context<'_>, is_wanted: impl Fn(&Lock) -> bool) -> Vec<Row> {
    let locks = context.snapshot.locks.last_rows();
    let wanted = |lock: &Lock| lock.granted && is_wanted(lock);
    // There may be many, and a growing list is in memory twice.
    let mut rows = Vec::with_capacity(locks.iter().filter(|lock| wanted(lock)).count());
    rows.extend((0u32..).zip(locks.iter()).filter(|(_, lock)| wanted(lock)).map(|(at, _)| Row::At(at)));
    rows
}

/// The locked object, cut to `room`; an advisory key without a name is shown as its number alone.
fn label(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    let label = fit_names(context.lock_label(&lock.tag, lock.pid), room);
    // A plain number is an advisory key, as the TYPE column shows.
    Cell::plain(label.strip_prefix("advisory ").map(str::to_owned).unwrap_or(label))
}

fn seconds(context: &Context<'_>, lock: &Lock) -> Option<f64> {
    lock_age(context, lock).map(|(seconds, _)| seconds)
}

fn age_cell(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    lock_age(context, lock).map_or_else(Cell::none, |known| {
        let words = age_words(known);
        let fits = words.chars().count() <= usize::from(room);
        Cell::plain(if fits { words } else { largest_unit(&words) })
    })
}

/// `seen 41m` for `seen 41m02s`, `seen 1s` for `seen 1.2s`: otherwise the unit could be cut off.
fn largest_unit(words: &str) -> String {
    let (before, age) = words.split_once(' ').unwrap_or(("", words));
    let number: String = age.chars().take_while(|character| !matches!(character, '.' | 'a'..='z')).collect();
    let unit = age.chars().find(char::is_ascii_alphabetic).map_or_else(String::new, String::from);
    format!("{before} {number}{unit}").trim_start().to_owned()
}

/// `None` if no session waits for the lock.
fn waiters(context: &Context<'_>, lock: &Lock) -> Option<i64> {
    let queue = context.queue(&lock.tag)?;
    i64::try_from(queue.waiters.len()).ok().filter(|count| *count > 0)
}

fn who(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    match lock.pid {
        None => Cell::server(context.prepared(lock.virtualtransaction).and_then(|row| row.owner.as_deref())),
        Some(pid) => {
            context.backend(pid).map_or_else(Cell::none, |backend| backends::who(context, backend, room))
        }
    }
}

pub(super) fn database<'a>(context: &Context<'a>, tag: &LockTag) -> Option<&'a str> {
    context.snapshot.names.databases.get(&tag.database()?).map(|name| &**name)
}

/// `X` and `S` are enough for the two modes of an advisory lock.
fn short_mode(lock: &Lock, room: u16) -> Cell {
    let short = match (lock.tag.locktype(), lock.mode) {
        (LockType::Advisory, LockMode::Exclusive) => "X",
        (LockType::Advisory, LockMode::Share) => "S",
        (_, mode) => return Cell::plain(mode.short()),
    };
    Cell::plain(if usize::from(room) >= "Exclusive".len() { lock.mode.short() } else { short })
}

/// The sort key of a row of `pg_locks`, with the index of the row last.
type LockKey = (u128, i32, u32);

/// Held locks with the longest queues first, then the others by locked object; within a lock by holder.
///
/// There are tens of thousands of locks, and few are awaited: all are sorted by object, and the rows of each queue are
/// found among them.
fn by_queue(context: &Context<'_>, rows: &mut Vec<Row>) {
    let all = context.snapshot.locks.last_rows();
    let key = |row: &Row| match row {
        Row::At(at) => all.get(*at as usize).map(|lock| lock_key(lock, *at)),
        _ => None,
    };
    let mut keys = Vec::with_capacity(rows.len());
    keys.extend(rows.iter().filter_map(key));
    rows.truncate(keys.len());
    keys.sort_unstable();
    let mut queues: Vec<_> = context.view.graph.queues.iter().collect();
    queues.order_by_key(|queue| (Reverse(queue.waiters.len()), queue.tag));
    let mut awaited = vec![false; keys.len()];
    // Overwrites the rows: there is one for each key.
    let mut places = rows.iter_mut();
    let mut put = |key: &LockKey| places.next().map_or((), |place| *place = Row::At(key.2));
    for queue in queues {
        let tag = packed(&queue.tag);
        let first = keys.partition_point(|key| key.0 < tag);
        for (key, awaited) in keys.iter().zip(&mut awaited).skip(first).take_while(|(key, _)| key.0 == tag) {
            if !std::mem::replace(awaited, true) {
                put(key);
            }
        }
    }
    keys.iter().zip(awaited).filter(|(_, awaited)| !awaited).for_each(|(key, _)| put(key));
}

fn lock_key(lock: &Lock, at: u32) -> LockKey {
    (packed(&lock.tag), lock.pid.unwrap_or(i32::MIN), at)
}

/// The locked object as one number for fast comparison: the type, the database, and the parts that locks of this type
/// have. The names of workers come last: each worker holds its own, and they are of little interest.
fn packed(tag: &LockTag) -> u128 {
    let of_worker =
        tag.objsubid() == Some(1) && tag.classid().is_some_and(|high| high >> 16 == u32::from(WORKERS));
    let virtualxid = tag.virtualxid().map(|xid| (xid.proc_number.cast_unsigned(), xid.local_xid));
    let upper = tag.relation().or(tag.classid()).or(tag.transactionid()).or(virtualxid.map(|xid| xid.0));
    let lower = tag.page().or(tag.objid()).or(virtualxid.map(|xid| xid.1));
    let last = tag.tuple().or(tag.objsubid());
    u128::from(of_worker && tag.locktype() == LockType::Advisory) << 120
        | u128::from(tag.locktype() as u8) << 112
        | u128::from(tag.database().unwrap_or_default()) << 80
        | u128::from(upper.unwrap_or_default()) << 48
        | u128::from(lower.unwrap_or_default()) << 16
        | u128::from(last.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_that_has_no_room_keeps_its_unit() {
        for (words, short) in [
            ("seen 1.2s", "seen 1s"),
            ("seen 41m02s", "seen 41m"),
            ("≥3d04h", "≥3d"),
            ("seen 17s", "seen 17s"),
        ] {
            assert_eq!(largest_unit(words), short);
        }
    }
}
