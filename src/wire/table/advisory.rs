//! Advisory locks by name: those that somebody waits for first.

use rustc_hash::FxHashMap;

use super::forest::who;
use super::{columns, more};
use crate::model::lock::{Lock, LockMode, LockTag, LockType};
use crate::model::snapshot::Snapshot;
use crate::model::view::View;
use crate::text::{Align, count, one_line};
use crate::wire::words::Words;

/// Locks that are shown.
const ROWS: usize = 50;

/// As many as there are with the database, which is the last.
const HEADS: [(&str, Align); 7] = [
    ("KEY", Align::Right),
    ("NAME", Align::Left),
    ("MODE", Align::Left),
    ("PID", Align::Right),
    ("WAITING", Align::Right),
    ("WHO", Align::Left),
    ("DATABASE", Align::Left),
];

pub(super) fn lines(view: &View, snapshot: &Snapshot, words: &Words<'_>) -> Vec<String> {
    let mut held: Vec<&Lock> = snapshot
        .locks
        .rows
        .iter()
        .filter(|lock| lock.granted && lock.tag.locktype() == LockType::Advisory)
        .collect();
    if held.is_empty() {
        return vec!["No advisory locks held.".to_owned()];
    }
    let waiting: FxHashMap<LockTag, usize> =
        view.graph.queues.iter().map(|queue| (queue.tag, queue.waiters.len())).collect();
    let waiters = |lock: &Lock| waiting.get(&lock.tag).copied().unwrap_or_default();
    held.sort_by_key(|lock| (std::cmp::Reverse(waiters(lock)), lock.tag, lock.pid));
    // The same key in two databases is two locks.
    let several =
        held.iter().any(|lock| held.first().is_some_and(|first| first.tag.database() != lock.tag.database()));
    let row = |lock: &&Lock| {
        let database = lock.tag.database().and_then(|oid| snapshot.names.databases.get(&oid));
        let mut cells = vec![
            lock.tag.advisory_key().map_or_else(String::new, |key| key.to_string()),
            words
                .name(&lock.tag, lock.pid)
                .map_or_else(String::new, |name| one_line(&name.to_string()).into_owned()),
            if lock.mode == LockMode::Share { "shared" } else { "exclusive" }.to_owned(),
            lock.pid.map_or_else(|| "prepared".to_owned(), |pid| pid.to_string()),
            waiters(lock).to_string(),
            who(lock.pid.and_then(|pid| words.backend(pid))),
        ];
        cells.extend(several.then(|| database.map(|name| one_line(name).into_owned()).unwrap_or_default()));
        cells
    };
    let rows: Vec<Vec<String>> = held.iter().take(ROWS).map(row).collect();
    let mut lines = vec![format!("Advisory locks: {} held", count(held.len() as u64))];
    let heads = HEADS.get(..if several { 7 } else { 6 }).unwrap_or_default();
    lines.extend(columns::laid_out(heads, &rows));
    lines.extend(more(held.len(), ROWS, "advisory locks"));
    lines
}
