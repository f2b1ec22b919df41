//! Held and awaited locks: the Locks screen.

mod detail;

use rustc_hash::FxHashSet;

use crate::app::context::Context;
use crate::app::keymap::Action;
use crate::app::line::Tone;
use crate::app::panes::backends::several_databases;
use crate::app::panes::cell::fit_names;
use crate::app::panes::column::{Columns, Rows};
use crate::app::panes::definition::{Basis, Definition};
use crate::app::panes::facts::Fact;
use crate::app::panes::party::backend_id;
use crate::app::panes::row::{Owner, Row, RowId};
use crate::app::panes::words::{DB, PID, QUERY, WHO};
use crate::app::panes::{Cell, Total, Value, backends, lock_order};
use crate::model::lock::{Lock, LockMode, LockTag, LockType};
use crate::model::wait_graph::Party;

/// Rows of `pg_locks`, as the snapshot has them.
pub(in crate::app::panes) struct Locks;

impl Rows for Locks {
    type Row<'a> = &'a Lock;

    fn get<'a>(context: &Context<'a>, row: Row) -> Option<&'a Lock> {
        context.snapshot.locks.last_rows().get(row.at()?)
    }

    fn id(context: &Context<'_>, lock: &Lock) -> Option<RowId> {
        let owner = match lock.pid {
            Some(pid) => Owner::Backend(backend_id(context, pid)),
            None => Owner::Prepared(lock.virtualtransaction),
        };
        Some(RowId::Lock(lock.tag, owner, lock.mode, lock.granted))
    }
}

type Column = crate::app::panes::Column<Locks>;

static COLUMNS: Columns<Locks> = Columns {
    shown: &[
        Column::cell(("LOCK", "lock", LOCK_HELP), (20, 40), |lock, context, room| label(context, lock, room)),
        Column::text(("TYPE", "type", "the lock type, as in pg_locks"), (8, 13), |lock, _| {
            Some(lock.tag.locktype().as_str())
        })
        .rank(5),
        Column::sorted(
            ("MODE", "mode", MODE_HELP),
            (10, 20),
            |lock, _, room| mode(lock, room),
            |lock, _| Value::text(Some(lock.mode.as_str())),
        ),
        Column::sorted(
            ("STATE", "state", "held or waiting"),
            (7, 7),
            |lock, _, _| state(lock),
            |lock, _| Value::text(Some(if lock.granted { "held" } else { "waiting" })),
        ),
        Column::sorted(
            ("AGE", "age", "how long it has been held or waited for"),
            (8, 11),
            |lock, context, room| age(context, lock, room),
            |lock, context| Value::number(seconds(context, lock)),
        )
        .right(),
        Column::number(("WAITERS", "waiters", WAITERS_HELP), (7, 7), Tone::Warning, |lock, context| {
            waiters(context, lock)
        }),
        Column::sorted(PID, (8, 8), |lock, _, _| pid(lock), |lock, _| Value::whole(lock.pid.map(i64::from))),
        Column::cell(WHO, (10, 24), |lock, context, room| who(context, lock, room)).rank(1),
        Column::text(DB, (6, 12), |lock, context| database(context, lock))
            .rank(4)
            .only_where(several_databases),
        Column::cell(("KEY", "key", KEY_HELP), (12, 22), |lock, _, _| key(lock)).rank(3),
        Column::statement(QUERY, (8, 0), |lock, context| context.backend(lock.pid?)?.query.as_ref()).rank(6),
    ],
    // The one age that is on the screen is either.
    others: &[
        Column::age(
            ("WAIT", "wait", "how long it has been waited for"),
            (6, 6),
            Tone::Plain,
            |lock, context| seconds(context, lock).filter(|_| !lock.granted),
        ),
        Column::age(("HELD", "held", "how long it has been held"), (6, 6), Tone::Plain, |lock, context| {
            seconds(context, lock).filter(|_| lock.granted)
        }),
    ],
};

pub(in crate::app::panes) const LOCK_HELP: &str =
    "the locked object; for an advisory lock the name of its key";
pub(in crate::app::panes) const MODE_HELP: &str = "the lock mode; advisory: X exclusive, S shared";
pub(in crate::app::panes) const WAITERS_HELP: &str = "sessions that wait for this lock";
pub(in crate::app::panes) const KEY_HELP: &str = "the advisory key: one number, or two";

pub(in crate::app::panes) static PANE: Definition = Definition {
    order: lock_order::by_queue,
    basis: Basis::Locks,
    empty: "no advisory lock, and no lock is waited for; a shows all types",
    facts,
    keys: &[Action::AllLocks],
    name: |context, id| match id {
        RowId::Lock(tag, ..) => {
            format!("Lock on {}", context.lock_label(&tag, crate::app::subject::pid_of(id)))
        }
        _ => String::new(),
    },
    detail: |context, id, width| match id {
        RowId::Lock(tag, ..) => detail::lines(context, &tag, width),
        _ => None,
    },
    ..Definition::new(("Locks", "a lock of a session"), &COLUMNS, |context, wanted| {
        let awaited: FxHashSet<&LockTag> = context.view.graph.queues.iter().map(|queue| &queue.tag).collect();
        let is_shown = |lock: &Lock| lock.tag.locktype() == LockType::Advisory || awaited.contains(&lock.tag);
        rows(context, |lock| wanted.all_locks || is_shown(lock))
    })
};

fn facts(context: &Context<'_>, total: Total) -> Vec<Fact> {
    let count = |number: usize| crate::text::count(number as u64);
    let queues = context.view.graph.queues.len();
    let mut facts = Vec::new();
    if queues > 0 {
        facts.push((format!("{} waited for", count(queues)), Tone::Warning));
    }
    let rows = count(total.rows);
    facts.push(match (total.all_locks, queues) {
        (true, _) => (format!("{rows} of all types"), Tone::Plain),
        (false, 0) => (format!("{rows} advisory; a shows all"), Tone::Plain),
        (false, _) => (format!("{rows} rows with all advisory; a shows all"), Tone::Plain),
    });
    if context.snapshot.locks_omitted > 0 {
        let omitted = crate::text::count(context.snapshot.locks_omitted);
        facts.push((format!("{omitted} uncontended ones not read"), Tone::Warning));
    }
    facts
}

pub(in crate::app::panes) use detail::lines as detail_lines;

/// The rows of `pg_locks` that are wanted.
pub(in crate::app::panes) fn rows(context: &Context<'_>, wanted: impl Fn(&Lock) -> bool) -> Vec<Row> {
    let locks = context.snapshot.locks.last_rows();
    // There may be many, and a list that grows is twice in memory.
    let mut rows = Vec::with_capacity(locks.iter().filter(|lock| wanted(lock)).count());
    rows.extend((0u32..).zip(locks.iter()).filter(|(_, lock)| wanted(lock)).map(|(at, _)| Row::At(at)));
    rows
}

/// What is locked, in so much room; an advisory key without a name is its number alone.
pub(in crate::app::panes) fn label(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    let label = fit_names(context.lock_label(&lock.tag, lock.pid), room);
    // A number is an advisory key, and TYPE says so.
    Cell::plain(label.strip_prefix("advisory ").map(str::to_owned).unwrap_or(label))
}

fn state(lock: &Lock) -> Cell {
    if lock.granted { Cell::plain("held") } else { Cell::toned("waiting", Tone::Warning) }
}

/// How sure it is since when a lock is held or waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The server says when it began, or what runs on it does.
    Exactly,
    /// It may be longer, and is not shorter.
    AtLeast,
    /// At every look for so long; in between it may have been released and taken again.
    Seen,
}

/// How long a lock is held or waited for, and how that is known.
pub(in crate::app) fn lock_age(context: &Context<'_>, lock: &Lock) -> Option<(f64, Known)> {
    if !lock.granted {
        return context.wait_age(lock.wait_start).map(|age| (age, Known::Exactly));
    }
    let key = (lock.pid?, lock.tag);
    if let Some(began) = context.view.runs_since.get(&key) {
        return context.age(Some(*began)).map(|age| (age, Known::Exactly));
    }
    let since = context.view.held_since.get(&key)?;
    if since.proved <= since.seen {
        return context.age(Some(since.proved)).map(|age| (age, Known::AtLeast));
    }
    context.age(Some(since.seen)).map(|age| (age, Known::Seen))
}

/// The duration with its sign: `7s`, `≥41s`, `seen 12s`.
pub(in crate::app) fn age_words((seconds, known): (f64, Known)) -> String {
    let age = crate::text::age(seconds);
    match known {
        Known::Exactly => age,
        Known::AtLeast => format!("≥{age}"),
        Known::Seen => format!("seen {age}"),
    }
}

/// How long it is held or waited for, in seconds.
pub(in crate::app::panes) fn seconds(context: &Context<'_>, lock: &Lock) -> Option<f64> {
    lock_age(context, lock).map(|(seconds, _)| seconds)
}

pub(in crate::app::panes) fn age(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    match lock_age(context, lock) {
        Some((seconds, _)) if !lock.granted => Cell::age(Some(seconds), Tone::Warning),
        Some(known) => {
            let words = age_words(known);
            let fits = words.chars().count() <= usize::from(room);
            Cell::plain(if fits { words } else { largest_unit(&words) })
        }
        None => Cell::none(),
    }
}

/// `seen 41m` for `seen 41m02s`, `seen 1s` for `seen 1.2s`: what is cut off would otherwise hide the unit.
fn largest_unit(words: &str) -> String {
    let (before, age) = words.split_once(' ').unwrap_or(("", words));
    let number: String = age.chars().take_while(|character| !matches!(character, '.' | 'a'..='z')).collect();
    let unit = age.chars().find(char::is_ascii_alphabetic).map_or_else(String::new, String::from);
    format!("{before} {number}{unit}").trim_start().to_owned()
}

/// How many wait for a lock that is held; none where nobody does.
pub(in crate::app::panes) fn waiters(context: &Context<'_>, lock: &Lock) -> Option<i64> {
    let queue = context.queue(&lock.tag).filter(|_| lock.granted)?;
    i64::try_from(queue.waiters.len()).ok().filter(|count| *count > 0)
}

pub(in crate::app::panes) fn pid(lock: &Lock) -> Cell {
    lock.pid.map_or_else(|| Cell::plain("prepared"), |pid| Cell::plain(pid.to_string()))
}

/// Whose it is: of a prepared transaction its owner.
pub(in crate::app::panes) fn who(context: &Context<'_>, lock: &Lock, room: u16) -> Cell {
    match lock.pid {
        None => Cell::server(context.prepared(lock.virtualtransaction).and_then(|row| row.owner.as_deref())),
        Some(pid) => {
            context.backend(pid).map_or_else(Cell::none, |backend| backends::who(context, backend, room))
        }
    }
}

pub(in crate::app::panes) fn database<'a>(context: &Context<'a>, lock: &Lock) -> Option<&'a str> {
    context.snapshot.names.databases.get(&lock.tag.database()?).map(|name| &**name)
}

pub(in crate::app::panes) fn key(lock: &Lock) -> Cell {
    lock.tag.advisory_key().map_or_else(Cell::none, |key| Cell::toned(key.to_string(), Tone::Dim))
}

/// Who holds it or waits for it.
pub(in crate::app::panes) fn party(lock: &Lock) -> Party {
    lock.pid.map_or(Party::Prepared(lock.virtualtransaction), Party::Backend)
}

/// `X` and `S` are enough for the two modes of an advisory lock.
pub(in crate::app::panes) fn mode(lock: &Lock, room: u16) -> Cell {
    let short = match (lock.tag.locktype(), lock.mode) {
        (LockType::Advisory, LockMode::Exclusive) => "X",
        (LockType::Advisory, LockMode::Share) => "S",
        (_, mode) => return Cell::plain(mode.short()),
    };
    Cell::plain(if usize::from(room) >= "Exclusive".len() { lock.mode.short() } else { short })
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
