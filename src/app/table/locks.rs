//! The columns of the Locks screen, and of the Advisory pane.

use std::borrow::Cow;

use super::{Cell, Column, Owner, Row, RowId, Value, age, server_text};
use crate::app::index::Scene;
use crate::app::line::Tone;
use crate::model::lock::{Lock, LockMode, LockType};
use crate::model::wait_graph::Party;

pub(super) const COLUMNS: &[Column] = &[
    Column { title: "LOCK", name: "lock", min: 20, max: 40, right: false, rank: 0 },
    Column { title: "TYPE", name: "type", min: 8, max: 13, right: false, rank: 5 },
    Column { title: "MODE", name: "mode", min: 10, max: 20, right: false, rank: 0 },
    Column { title: "STATE", name: "state", min: 7, max: 7, right: false, rank: 0 },
    Column { title: "AGE", name: "age", min: 8, max: 11, right: true, rank: 0 },
    Column { title: "WAITERS", name: "waiters", min: 7, max: 7, right: true, rank: 0 },
    Column { title: "PID", name: "pid", min: 8, max: 8, right: false, rank: 0 },
    Column { title: "WHO", name: "who", min: 10, max: 24, right: false, rank: 1 },
    Column { title: "DB", name: "db", min: 6, max: 12, right: false, rank: 4 },
    Column { title: "KEY", name: "key", min: 12, max: 22, right: false, rank: 3 },
    Column { title: "QUERY", name: "query", min: 8, max: 0, right: false, rank: 6 },
];

/// How long it is waited for, and how long it is held: the one age that is on the screen is either.
pub(super) const FILTER_ONLY: &[&str] = &["wait", "held"];

pub(super) const ADVISORY: &[Column] = &[
    Column { title: "NAME", name: "lock", min: 20, max: 40, right: false, rank: 0 },
    Column { title: "MODE", name: "mode", min: 4, max: 9, right: false, rank: 0 },
    Column { title: "PID", name: "pid", min: 8, max: 8, right: false, rank: 0 },
    Column { title: "OWNER", name: "who", min: 10, max: 24, right: false, rank: 0 },
    Column { title: "HELD", name: "age", min: 11, max: 11, right: true, rank: 0 },
    Column { title: "WAITERS", name: "waiters", min: 7, max: 7, right: true, rank: 0 },
    Column { title: "KEY", name: "key", min: 12, max: 22, right: false, rank: 2 },
    Column { title: "DB", name: "db", min: 6, max: 12, right: false, rank: 3 },
    Column { title: "STATE", name: "holder", min: 12, max: 0, right: false, rank: 0 },
];

/// Which rows of `pg_locks` are on the Locks screen: advisory ones, or all.
#[must_use]
pub fn lock_rows(scene: &Scene<'_>, all: bool) -> Vec<Row> {
    rows(scene, |lock| all || lock.tag.locktype == LockType::Advisory)
}

/// Held advisory locks.
#[must_use]
pub fn advisory_rows(scene: &Scene<'_>) -> Vec<Row> {
    rows(scene, |lock| lock.granted && lock.tag.locktype == LockType::Advisory)
}

fn rows(scene: &Scene<'_>, wanted: impl Fn(&Lock) -> bool) -> Vec<Row> {
    let locks = scene.snapshot.locks.rows.iter().enumerate();
    locks
        .filter(|(_, lock)| wanted(lock))
        .filter_map(|(at, _)| u32::try_from(at).ok().map(Row::Lock))
        .collect()
}

fn lock<'a>(scene: &Scene<'a>, at: u32) -> Option<&'a Lock> {
    scene.snapshot.locks.rows.get(at as usize)
}

/// How a time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum Known {
    Exactly,
    /// It may be longer, and is not shorter.
    AtLeast,
    /// At every look for so long; in between it may have been released and taken again.
    Seen,
}

/// How long a lock is held or waited for, and how that is known.
pub(in crate::app) fn lock_age(scene: &Scene<'_>, lock: &Lock) -> Option<(f64, Known)> {
    if !lock.granted {
        return scene.wait_age(lock.wait_start).map(|age| (age, Known::Exactly));
    }
    let key = (lock.pid?, lock.tag);
    if let Some(began) = scene.view.runs_since.get(&key) {
        return scene.age(Some(*began)).map(|age| (age, Known::Exactly));
    }
    let since = scene.view.held_since.get(&key)?;
    if since.proved <= since.seen {
        return scene.age(Some(since.proved)).map(|age| (age, Known::AtLeast));
    }
    scene.age(Some(since.seen)).map(|age| (age, Known::Seen))
}

/// `7.2s`, `≥41s`, `seen 12s`
pub(in crate::app) fn age_words((seconds, known): (f64, Known)) -> String {
    let age = crate::text::duration(seconds);
    match known {
        Known::Exactly => age,
        Known::AtLeast => format!("≥{age}"),
        Known::Seen => format!("seen {age}"),
    }
}

/// `seen 41m` for `seen 41m02s`, `seen 1s` for `seen 1.2s`: what is cut off would otherwise hide the unit.
fn largest_unit(words: &str) -> String {
    let (before, age) = words.split_once(' ').unwrap_or(("", words));
    let number: String = age.chars().take_while(|character| !matches!(character, '.' | 'a'..='z')).collect();
    let unit = age.chars().find(char::is_ascii_alphabetic).map_or_else(String::new, String::from);
    format!("{before} {number}{unit}").trim_start().to_owned()
}

fn waiters(scene: &Scene<'_>, lock: &Lock) -> Option<usize> {
    let queue = scene.queue(&lock.tag).filter(|_| lock.granted)?;
    Some(queue.waiters.len()).filter(|count| *count > 0)
}

/// `X` and `S` are enough for the two modes of an advisory lock.
fn mode(lock: &Lock, room: u16) -> String {
    let short = match (lock.tag.locktype, lock.mode) {
        (LockType::Advisory, LockMode::Exclusive) => "X",
        (LockType::Advisory, LockMode::Share) => "S",
        (_, mode) => return mode.short().to_owned(),
    };
    if usize::from(room) >= "Exclusive".len() { lock.mode.short().to_owned() } else { short.to_owned() }
}

pub(super) fn cell(scene: &Scene<'_>, at: u32, column: &str, room: u16) -> Cell {
    let Some(lock) = lock(scene, at) else { return Cell::none() };
    let backend = lock.pid.and_then(|pid| scene.backend(pid));
    match column {
        "lock" => {
            let label = super::fit_names(scene.lock_label(&lock.tag, lock.pid), room);
            // A number is an advisory key, and TYPE says so.
            Cell::plain(label.strip_prefix("advisory ").map(str::to_owned).unwrap_or(label))
        }
        "type" => Cell::plain(lock.tag.locktype.as_str()),
        "mode" => Cell::plain(mode(lock, room)),
        "state" if lock.granted => Cell::plain("held"),
        "state" => Cell::toned("waiting", Tone::Warning),
        "age" => match lock_age(scene, lock) {
            Some((seconds, _)) if !lock.granted => age(Some(seconds), Tone::Warning),
            Some(known) => {
                let words = age_words(known);
                let fits = words.chars().count() <= usize::from(room);
                Cell::plain(if fits { words } else { largest_unit(&words) })
            }
            None => Cell::none(),
        },
        "waiters" => match waiters(scene, lock) {
            Some(count) => Cell::toned(count.to_string(), Tone::Warning),
            None => Cell::none(),
        },
        "pid" => lock.pid.map_or_else(|| Cell::plain("prepared"), |pid| Cell::plain(pid.to_string())),
        "who" => match (lock.pid, backend) {
            (None, _) => server_text(
                scene.prepared(lock.virtualtransaction).and_then(|prepared| prepared.owner.as_deref()),
            ),
            (_, Some(backend)) => super::backends::who(scene, backend, room),
            _ => Cell::none(),
        },
        "db" => server_text(
            lock.tag.database.and_then(|oid| scene.snapshot.names.databases.get(&oid)).map(|name| &**name),
        ),
        "key" => {
            lock.tag.advisory_key().map_or_else(Cell::none, |key| Cell::toned(key.to_string(), Tone::Dim))
        }
        "holder" => {
            let party = lock.pid.map_or(Party::Prepared(lock.virtualtransaction), Party::Backend);
            super::chains::root_state(scene, party, 40)
        }
        "query" => server_text(backend.and_then(|backend| backend.query.as_deref())),
        _ => Cell::none(),
    }
}

pub(super) fn value<'a>(scene: &Scene<'a>, at: u32, column: &str) -> Value<'a> {
    let Some(lock) = lock(scene, at) else { return Value::Missing };
    match column {
        "age" => Value::number(lock_age(scene, lock).map(|(seconds, _)| seconds)),
        "wait" => Value::number(lock_age(scene, lock).map(|(seconds, _)| seconds).filter(|_| !lock.granted)),
        "held" => Value::number(lock_age(scene, lock).map(|(seconds, _)| seconds).filter(|_| lock.granted)),
        "waiters" => {
            Value::number(waiters(scene, lock).and_then(|count| u32::try_from(count).ok()).map(f64::from))
        }
        "pid" => Value::number(lock.pid.map(f64::from)),
        "type" => Value::Text(Cow::Borrowed(lock.tag.locktype.as_str())),
        "mode" => Value::Text(Cow::Borrowed(lock.mode.as_str())),
        "state" => Value::Text(Cow::Borrowed(if lock.granted { "held" } else { "waiting" })),
        "holder" => {
            let party = lock.pid.map_or(Party::Prepared(lock.virtualtransaction), Party::Backend);
            super::chains::state_value(scene, party)
        }
        _ => Value::Text(Cow::Owned(cell(scene, at, column, u16::MAX).text)),
    }
}

pub(super) fn id(scene: &Scene<'_>, at: u32) -> Option<RowId> {
    let lock = lock(scene, at)?;
    let owner = match lock.pid {
        Some(pid) => Owner::Backend(super::chains::backend_id(scene, pid)),
        None => Owner::Prepared(lock.virtualtransaction),
    };
    Some(RowId::Lock(lock.tag, owner, lock.mode, lock.granted))
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
