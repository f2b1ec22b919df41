//! Statements that take a strong lock on a table: the longest wait, and repeated statements. Snapshots miss short runs,
//! but the server keeps the last statement of an idle session with its start and end.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::feed::record::redact::Redaction;
use crate::feed::replay::Recording;
use crate::model::backend::{Backend, State};
use crate::model::blame::{BlameKey, BlamePeriod, Ending, Episode};
use crate::model::disclosure::{Channel, Mode, shown};
use crate::model::lock::{LockMode, LockType};
use crate::model::section::Observed;
use crate::model::snapshot::{Server, Snapshot};
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::{Timestamp, fingerprint, statement, words};
use crate::order::SortExt;
use crate::output::report::{AdvisedSetting, IncidentReport, Tries};
use crate::text::{count, duration, one_line, one_line_prefix};

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
struct SeenDdl {
    tries: Tries,
    runs: FxHashSet<(i32, Timestamp)>,
}

#[derive(Debug)]
pub(super) struct Ddl {
    redaction: Redaction,
    /// By user and application, and statement without literals.
    seen: FxHashMap<(String, String), SeenDdl>,
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
    pub(super) fn add_snapshot(&mut self, recording: &mut Recording, (place, waiting): (usize, u32)) {
        let Ok(mut kept) = recording.read(place) else { return };
        self.redaction.apply_to_recorded(&mut kept);
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
            self.seen.insert(key.clone(), SeenDdl { tries, runs: FxHashSet::default() });
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

    pub(super) fn tries(&self) -> Vec<Tries> {
        let repeated = self.seen.values().filter(|seen| seen.runs.len() >= REPEATED);
        let mut tries: Vec<Tries> = repeated.map(|seen| seen.tries.clone()).collect();
        tries.order_by(|a, b| b.runs.cmp(&a.runs).then(a.from.cmp(&b.from)).then_with(|| a.who.cmp(&b.who)));
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

/// Seconds after which an idle transaction that blocks others should be terminated.
const IDLE: f64 = 40.0;

/// The server's default `deadlock_timeout`, in seconds.
const USUAL: f64 = 1.0;

pub(super) fn settings(report: &IncidentReport, view: &View) -> Vec<AdvisedSetting> {
    let mut found = Vec::new();
    let episodes = report.blame.episodes_in(BlamePeriod::All);
    let idle = |episode: &&Episode| {
        episode.keys.iter().any(|key| &*key.doing == "idle in xact") && episode.length() > IDLE
    };
    if let Some(worst) = episodes.filter(idle).max_by(|a, b| a.sums.seconds.total_cmp(&b.sums.seconds)) {
        let limit = if worst.length() > 3.0 * IDLE { "1min" } else { "30s" };
        let advice = format!(
            "{} was idle in its transaction and blocked others for {}; with '{limit}' for its role the server would have terminated it",
            worst.pid,
            duration(worst.length()),
        );
        found.push(AdvisedSetting { name: "idle_in_transaction_session_timeout", value: None, advice });
    }
    let Some(server) = view.snapshot.as_deref().and_then(|snapshot| snapshot.server()) else { return found };
    found.extend(deadlock_timeout(report, server));
    found.extend(log_lock_waits(report, server));
    if u64::from(server.connections) * 10 >= u64::from(server.max_connections) * 9 {
        let advice = format!(
            "{} were in use at the worst moment: waiting sessions occupy connections; a pooler or lock_timeout keeps some free",
            server.connections
        );
        let value = Some(server.max_connections.to_string());
        found.push(AdvisedSetting { name: "max_connections", value, advice });
    }
    let statements = report.blame.table.episodes.iter().flat_map(|episode| &episode.ran);
    let kept = usize::try_from(server.query_size).unwrap_or(usize::MAX).saturating_sub(1);
    // locktop itself cuts statements at this length, so truncation by the server is detectable only below it.
    if kept > 0 && kept < 500 && statements.into_iter().any(|ran| ran.statement.len() >= kept) {
        found.push(AdvisedSetting {
            name: "track_activity_query_size",
            value: Some(server.query_size.to_string()),
            advice: "statements were truncated by the server; a longer limit needs a restart".to_owned(),
        });
    }
    found
}

/// Advice if a statement that changes a table waited too long, whether or not it blocked others.
pub(super) fn lock_timeout(view: &View, pid: i32, mode: Mode) -> Option<AdvisedSetting> {
    let (graph, snapshot) = (&view.graph, view.snapshot.as_deref()?);
    let party = Party::Backend(pid);
    let (queue, at) = graph.wait_of(party)?;
    let waiter = queue.waiters.get(at)?;
    let seconds = (snapshot.taken_at - waiter.wait_start?).as_seconds_f64();
    let below = graph.tree.nodes.iter().find(|node| node.party == party).map_or(0, |node| node.below);
    let query = view.index.backend(snapshot, pid).and_then(|backend| backend.query.as_ref());
    let query = query.map(|query| shown(Channel::Report(mode), query)).unwrap_or_default();
    let helped = match below {
        0 => "with '2s' and a retry it would not have blocked later requests for that long".to_owned(),
        1 => "and 1 session behind it; with '2s' and a retry that would not have waited behind it".to_owned(),
        many => format!("and {many} behind it; with '2s' and a retry they would not have waited behind it"),
    };
    let advice = format!(
        "{pid} waited at least {} for {} ({}), so it had no shorter lock_timeout, {helped}",
        duration(seconds),
        waiter.mode.short(),
        one_line_prefix(&query, 80),
    );
    Some(AdvisedSetting { name: "lock_timeout", value: None, advice })
}

/// The server resolves deadlocks, and cancels a blocking autovacuum, only after this timeout.
fn deadlock_timeout(report: &IncidentReport, server: &Server) -> Option<AdvisedSetting> {
    let timeout = server.deadlock_timeout.filter(|timeout| *timeout > USUAL)?;
    let episodes = || report.blame.episodes_in(BlamePeriod::All).filter(|episode| episode.length() > USUAL);
    let is_circle = |episode: &Episode| {
        episode.ending == Ending::Deadlock
            || episode.keys.iter().any(|key| &*key.doing == "sessions that wait for each other")
    };
    // An autovacuum to prevent wraparound is not canceled.
    let is_vacuum = |episode: &Episode| {
        let vacuums = |key: &BlameKey| {
            &*key.doing == "autovacuum worker" && !key.statement.contains("to prevent wraparound")
        };
        episode.keys.iter().any(|key| vacuums(key))
    };
    let what = if episodes().any(is_circle) {
        "sessions waited for each other longer than necessary: with '1s' the server would have broken the deadlock earlier"
    } else if episodes().any(is_vacuum) {
        "autovacuum is canceled only after that time: with '1s' it would have been earlier"
    } else {
        return None;
    };
    Some(AdvisedSetting { name: "deadlock_timeout", value: Some(duration(timeout)), advice: what.to_owned() })
}

/// The server log would contain all waits, while snapshots see only some.
fn log_lock_waits(report: &IncidentReport, server: &Server) -> Option<AdvisedSetting> {
    if server.log_lock_waits != Some(false) {
        return None;
    }
    let timeout = server.deadlock_timeout.unwrap_or(USUAL);
    let waits = report.blame.total(BlamePeriod::All).waits;
    let is_long = |episode: &Episode| episode.length() > timeout;
    if !report.blame.episodes_in(BlamePeriod::All).any(is_long) {
        return None;
    }
    let advice = format!(
        "{} waits were seen; with 'on' the server's log has each that is longer than deadlock_timeout ({}), with its statement and the holder of the lock",
        count(waits),
        duration(timeout)
    );
    Some(AdvisedSetting { name: "log_lock_waits", value: Some("off".to_owned()), advice })
}
