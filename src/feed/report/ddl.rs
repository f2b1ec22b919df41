//! Statements that take a strong lock on a table: the longest wait, and repeated statements. Snapshots miss short runs,
//! but the server keeps the last statement of an idle session with its start and end.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::feed::record::redact::Redaction;
use crate::feed::replay::Recording;
use crate::model::backend::{Backend, State};
use crate::model::lock::{LockMode, LockType};
use crate::model::observed::Observed;
use crate::model::output::{Channel, shown};
use crate::model::snapshot::Snapshot;
use crate::model::{Timestamp, fingerprint, statement, words};
use crate::text::{one_line, one_line_prefix};
use crate::wire::report::Tries;

/// Seconds that such a statement should wait at most.
const LIMIT: f64 = 2.0;

/// Runs from which a statement counts as repeated.
const REPEATED: usize = 3;

/// Bytes of a statement that are parsed, and columns that are shown.
const READ: usize = 2_000;
const SHOWN: usize = 100;

/// Most statements, and most runs of each.
const STATEMENTS: usize = 200;
const RUNS: usize = 10_000;

#[derive(Debug)]
struct Seen {
    tries: Tries,
    runs: FxHashSet<(i32, Timestamp)>,
}

#[derive(Debug)]
pub(super) struct Ddl {
    redaction: Redaction,
    /// By user and application, and statement without literals.
    seen: FxHashMap<(String, String), Seen>,
    /// By process id: the start of the last statement, and whether it takes a strong lock.
    known: FxHashMap<i32, (Timestamp, bool)>,
    /// The longest wait: seconds, position of the snapshot, process id.
    longest: Option<(f64, usize, i32)>,
}

impl Ddl {
    pub(super) fn new(redaction: Redaction) -> Self {
        Self { redaction, seen: FxHashMap::default(), known: FxHashMap::default(), longest: None }
    }

    /// Adds the snapshot at a position, with its number of waiting sessions.
    pub(super) fn look(&mut self, recording: &mut Recording, (place, waiting): (usize, u32)) {
        let Ok(mut kept) = recording.read(place) else { return };
        self.redaction.apply_to_kept(&mut kept);
        let snapshot = &kept.snapshot;
        let awaited = if waiting > 0 { awaited(snapshot) } else { FxHashMap::default() };
        let Observed::Read(backends) = snapshot.backends.observed() else { return };
        for backend in backends {
            let Some((begin, who)) = backend.query_start.zip(client(backend)) else { continue };
            let is_known = self.known.get(&backend.pid).filter(|(known, _)| *known == begin);
            let is_strong = is_known.map_or_else(|| is_strong(backend), |(_, is_strong)| *is_strong);
            self.known.insert(backend.pid, (begin, is_strong));
            if !is_strong {
                continue;
            }
            let waits = awaited.get(&backend.pid);
            self.run(backend, (begin, who), (snapshot.taken_at, waits.is_some()));
            let Some(Some(since)) = waits else { continue };
            let seconds = (snapshot.taken_at - *since).as_seconds_f64();
            if seconds > LIMIT && self.longest.is_none_or(|(longest, ..)| seconds > longest) {
                self.longest = Some((seconds, place, backend.pid));
            }
        }
    }

    fn run(&mut self, backend: &Backend, (begin, who): (Timestamp, String), (now, waits): (Timestamp, bool)) {
        let key = (who, fingerprint::fingerprint(text(backend)));
        if !self.seen.contains_key(&key) {
            if self.seen.len() >= STATEMENTS {
                return;
            }
            let shown = query_shown(self.redaction, backend);
            let shown = one_line(&shown);
            let statement = one_line_prefix(shown.trim_end_matches([';', ' ']), SHOWN).into_owned();
            let (who, from, to) = (key.0.clone(), begin, begin);
            let tries = Tries { who, statement, runs: 0, from, to, longest: 0.0, waiting: 0 };
            self.seen.insert(key.clone(), Seen { tries, runs: FxHashSet::default() });
        }
        let Some(seen) = self.seen.get_mut(&key) else { return };
        if seen.runs.len() < RUNS {
            seen.runs.insert((backend.pid, begin));
        }
        // For an idle session, state_change is the end of its statement.
        let is_over = matches!(
            backend.state,
            Some(State::Idle | State::IdleInTransaction | State::IdleInTransactionAborted)
        );
        let end = backend.state_change.filter(|_| is_over).unwrap_or(now);
        let tries = &mut seen.tries;
        tries.runs = seen.runs.len();
        (tries.from, tries.to) = (tries.from.min(begin), tries.to.max(begin));
        tries.longest = tries.longest.max((end - begin).as_seconds_f64());
        tries.waiting += usize::from(waits);
    }

    /// Repeated statements, the most frequent first.
    pub(super) fn tries(&self) -> Vec<Tries> {
        let repeated = self.seen.values().filter(|seen| seen.runs.len() >= REPEATED);
        let mut tries: Vec<Tries> = repeated.map(|seen| seen.tries.clone()).collect();
        tries.sort_by(|a, b| b.runs.cmp(&a.runs).then(a.from.cmp(&b.from)).then_with(|| a.who.cmp(&b.who)));
        tries
    }

    /// The snapshot with the longest wait, and the waiting process. `None` if all waits were short.
    pub(super) fn longest(&self) -> Option<(usize, i32)> {
        self.longest.map(|(_, place, pid)| (place, pid))
    }
}

/// Processes that wait for a lock on a table, with the start of the wait.
fn awaited(snapshot: &Snapshot) -> FxHashMap<i32, Option<Timestamp>> {
    let Observed::Read(locks) = snapshot.locks.observed() else { return FxHashMap::default() };
    let waits = locks.iter().filter(|lock| !lock.granted && lock.tag.locktype() == LockType::Relation);
    waits.filter_map(|lock| Some((lock.pid?, lock.wait_start))).collect()
}

/// User and application; `None` if it is not a client backend.
fn client(backend: &Backend) -> Option<String> {
    let is_client = backend.backend_type.as_deref() == Some("client backend");
    is_client.then(|| words::who(backend))
}

/// Whether its statement takes a table lock that blocks writers.
fn is_strong(backend: &Backend) -> bool {
    let statement = statement::first(text(backend), READ).filter(|statement| !statement.is_query());
    statement.is_some_and(|statement| {
        statement.takes.iter().any(|take| take.relation().is_some() && take.mode >= LockMode::Share)
    })
}

/// The statement; only for parsing and comparison, not for output.
fn text(backend: &Backend) -> &str {
    backend.query.as_ref().map_or("", |query| query.unredacted())
}

fn query_shown(redaction: Redaction, backend: &Backend) -> String {
    let channel = Channel::Report(redaction.mode());
    backend.query.as_ref().map(|query| shown(channel, query).into_owned()).unwrap_or_default()
}
