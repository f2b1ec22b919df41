//! Locks that are held: the rows of `pg_locks` that no session waits for.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::backends::{self, several_databases};
use super::cell::{age_words, fit_names, lock_age};
use super::column::{Columns, DB, PID, QUERY, Rows, TYPE_HELP, WHO};
use super::definition::{Basis, Definition};
use super::facts::Fact;
use super::locks::detail_lines;
use super::{Cell, Owner, Row, RowId, Total, Value};
use crate::app::context::Context;
use crate::app::line::Tone;
use crate::model::lock::{Lock, LockMode, LockTag, LockType};
use crate::model::namespace::WORKERS;
use crate::model::wait_graph::Party;
use crate::order::Order;

pub(super) struct Held;

impl Rows for Held {
    type Row<'a> = &'a Lock;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<&'a Lock> {
        context.snapshot.locks.last_rows().get(row.at()?)
    }

    fn id(context: &Context<'_>, lock: &Lock) -> Option<RowId> {
        let owner = match lock.pid {
            Some(pid) => Owner::Backend(context.view.backend_id(pid)),
            None => Owner::Prepared(lock.virtualtransaction),
        };
        Some(RowId::Lock(lock.tag, owner, lock.mode))
    }
}

type Column = super::Column<Held>;

static COLUMNS: Columns<Held> = Columns {
    shown: &[
        Column::cell(("NAME", "lock", LOCK_HELP), (20, 40), |lock, context, room| label(context, lock, room)),
        Column::text(("TYPE", "type", TYPE_HELP), (8, 13), |lock, _| Some(lock.tag.locktype().as_str()))
            .rank(5),
        Column::sorted(
            ("MODE", "mode", MODE_HELP),
            (9, 20),
            |lock, _, room| mode(lock, room),
            |lock, _| Value::text(Some(lock.mode.as_str())),
        ),
        Column::sorted(PID, (8, 8), |lock, _, _| pid(lock), |lock, _| Value::whole(lock.pid.map(i64::from))),
        Column::cell(WHO, (10, 24), |lock, context, room| who(context, lock, room)).rank(1),
        Column::sorted(
            ("HELD", "age", "how long it has been held"),
            (8, 11),
            |lock, context, room| age(context, lock, room),
            |lock, context| Value::number(seconds(context, lock)),
        )
        .right(),
        Column::text(DB, (6, 12), |lock, context| database(context, lock))
            .rank(4)
            .only_where(several_databases),
        Column::cell(("KEY", "key", KEY_HELP), (12, 22), |lock, _, _| key(lock)).rank(3),
        Column::statement(QUERY, (8, 0), |lock, context| context.backend(lock.pid?)?.query.as_ref()).rank(6),
    ],
    others: &[Column::age(
        ("HELD", "held", "how long it has been held"),
        (6, 6),
        Tone::Plain,
        |lock, context| seconds(context, lock),
    )],
};

pub(super) const LOCK_HELP: &str = "the locked object; for an advisory lock the name of its key";
pub(super) const MODE_HELP: &str = "the lock mode; advisory: X exclusive, S shared";
pub(super) const WAITERS_HELP: &str = "sessions that wait for this lock";
pub(super) const KEY_HELP: &str = "the advisory key: one number, or two";

pub(super) static PANE: Definition = Definition {
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
        RowId::Lock(tag, ..) => detail_lines(context, &tag, width),
        _ => None,
    },
    ..Definition::new(("Held, not waited for", "a lock of a session"), &COLUMNS, |context, wanted| {
        let awaited: FxHashSet<&LockTag> = context.view.graph.queues.iter().map(|queue| &queue.tag).collect();
        let is_type = |lock: &Lock| wanted.all_locks || lock.tag.locktype() == LockType::Advisory;
        rows(context, |lock| lock.granted && is_type(lock) && !awaited.contains(&lock.tag))
    })
};

/// `33`, or `1,204 of all types`.
fn facts(context: &Context<'_>, total: Total) -> Vec<Fact> {
    let rows = crate::text::count(total.rows as u64);
    let rows = if total.all_locks { format!("{rows} of all types") } else { rows };
    let mut facts = vec![(rows, Tone::Plain)];
    if context.snapshot.locks_omitted > 0 {
        let omitted = crate::text::count(context.snapshot.locks_omitted);
        facts.push((format!("{omitted} uncontended ones not read"), Tone::Warning));
    }
    facts
}

pub(super) fn rows(context: &Context<'_>, wanted: impl Fn(&Lock) -> bool) -> Vec<Row> {
    let locks = context.snapshot.locks.last_rows();
    // There may be many, and a growing list is in memory twice.
    let mut rows = Vec::with_capacity(locks.iter().filter(|lock| wanted(lock)).count());
    rows.extend((0u32..).zip(locks.iter()).filter(|(_, lock)| wanted(lock)).map(|(at, _)| Row::At(at)));
    rows
}

/// The locked object, cut to `room`; an advisory key without a name is shown as its number alone.
pub(super) fn label(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    let label = fit_names(context.lock_label(&lock.tag, lock.pid), room);
    // A plain number is an advisory key, as the TYPE column shows.
    Cell::plain(label.strip_prefix("advisory ").map(str::to_owned).unwrap_or(label))
}

pub(super) fn seconds(context: &Context<'_>, lock: &Lock) -> Option<f64> {
    lock_age(context, lock).map(|(seconds, _)| seconds)
}

pub(super) fn age(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    match lock_age(context, lock) {
        Some(known) => {
            let words = age_words(known);
            let fits = words.chars().count() <= usize::from(room);
            Cell::plain(if fits { words } else { largest_unit(&words) })
        }
        None => Cell::none(),
    }
}

/// `seen 41m` for `seen 41m02s`, `seen 1s` for `seen 1.2s`: otherwise the unit could be cut off.
fn largest_unit(words: &str) -> String {
    let (before, age) = words.split_once(' ').unwrap_or(("", words));
    let number: String = age.chars().take_while(|character| !matches!(character, '.' | 'a'..='z')).collect();
    let unit = age.chars().find(char::is_ascii_alphabetic).map_or_else(String::new, String::from);
    format!("{before} {number}{unit}").trim_start().to_owned()
}

/// `None` if no session waits for the lock.
pub(super) fn waiters(context: &Context<'_>, lock: &Lock) -> Option<i64> {
    let queue = context.queue(&lock.tag)?;
    i64::try_from(queue.waiters.len()).ok().filter(|count| *count > 0)
}

pub(super) fn pid(lock: &Lock) -> Cell {
    lock.pid.map_or_else(|| Cell::plain("prepared"), |pid| Cell::plain(pid.to_string()))
}

pub(super) fn who(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    match lock.pid {
        None => Cell::server(context.prepared(lock.virtualtransaction).and_then(|row| row.owner.as_deref())),
        Some(pid) => {
            context.backend(pid).map_or_else(Cell::none, |backend| backends::who(context, backend, room))
        }
    }
}

pub(super) fn database<'a>(context: &Context<'a>, lock: &Lock) -> Option<&'a str> {
    context.snapshot.names.databases.get(&lock.tag.database()?).map(|name| &**name)
}

pub(super) fn key(lock: &Lock) -> Cell {
    lock.tag.advisory_key().map_or_else(Cell::none, |key| Cell::toned(key.to_string(), Tone::Dim))
}

pub(super) fn party(lock: &Lock) -> Party {
    lock.pid.map_or(Party::Prepared(lock.virtualtransaction), Party::Backend)
}

/// `X` and `S` are enough for the two modes of an advisory lock.
pub(super) fn mode(lock: &Lock, room: u16) -> Cell {
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
pub(super) fn by_queue(context: &Context<'_>, rows: &mut Vec<Row>) {
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
