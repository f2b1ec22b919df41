//! From looks to what each of them adds.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::statements::Statements;
use super::{Begun, Cost, Ended, Ending, Key, Ran, Sums, Tick};
use crate::model::backend::{Backend, BackendId, State};
use crate::model::event::harmless;
use crate::model::finding::Deadlocks;
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_name::LockNames;
use crate::model::lock_waits::{self, contended};
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::wait_graph::{Party, Queue, WaitGraph};
use crate::model::{Text, Timestamp, fingerprint, words};

/// Looks without anybody behind it after which an episode is over.
const GAP: u64 = 3;

/// Roots among which a wait is split: the worst of those there are.
const ROOTS: usize = 50;

/// Actions that may have ended an episode.
const ACTIONS: usize = 200;

/// What a look has.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// What the server said.
    pub snapshot: &'a Snapshot,
    /// Who waits for whom in it.
    pub graph: &'a WaitGraph,
    /// Where things are in both.
    pub index: &'a SnapshotIndex,
    /// Names of advisory keys.
    pub names: &'a LockNames,
    /// Deadlocks up to it.
    pub deadlocks: &'a Deadlocks,
}

/// Whom a wait is blamed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Cause {
    /// Somebody who waits for nobody.
    Root(Party),
    /// Sessions that wait for each other.
    Circle,
    /// Nobody is in the way: the lock is about to be granted.
    Nobody,
}

/// What tells one episode from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    cause: Cause,
    backend_start: Option<Timestamp>,
    xact_start: Option<Timestamp>,
    lock: LockTag,
}

/// An episode that is not over.
#[derive(Debug)]
struct Open {
    number: u64,
    begin: Timestamp,
    look: u64,
    /// What the key was made of, and the key.
    state: (Option<State>, Option<Timestamp>),
    key: Arc<Key>,
    /// When the last of its statements began that was told.
    told: Option<Timestamp>,
    /// What was done to one of those who wait for each other.
    note: Option<Text>,
}

/// A wait, as it was at the last look.
#[derive(Debug)]
struct Wait {
    tag: LockTag,
    start: Option<Timestamp>,
    /// All of it, whoever it is blamed on.
    whole: Share,
    behind: Vec<Share>,
}

/// What of a wait falls to an episode.
#[derive(Debug, Clone, Copy)]
struct Share {
    episode: u64,
    part: f64,
    /// It was seen at more than one look.
    is_long: bool,
    /// The square of the error that it brought with it.
    error: f64,
}

/// What an episode costs at a look, in shares of waits.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    parts: f64,
    blocked: u32,
    begun: u64,
    /// In squares of seconds.
    variance: f64,
    /// What ended since the look before, of waits that were seen once, and of others: the sum of the shares, and of their squares.
    short: (f64, f64),
    long: (f64, f64),
}

impl Sum {
    /// A wait is seen so many times, or once more: how far off that is depends on where the looks fall, so the error of one that is
    /// seen once is at most the time between two looks, and of another half of it.
    fn see(&mut self, part: f64, before: Option<Share>, seconds: f64) -> f64 {
        self.parts += part;
        self.blocked += 1;
        let whole = (part * seconds) * (part * seconds);
        let (error, known) = match before {
            None => (whole, 0.0),
            Some(share) if !share.is_long => (whole / 4.0, share.error),
            Some(share) => (share.error, share.error),
        };
        self.begun += u64::from(before.is_none());
        self.variance += error - known;
        error
    }

    fn end(&mut self, part: f64, is_long: bool) {
        let (sum, squares) = if is_long { &mut self.long } else { &mut self.short };
        *sum += part;
        *squares += part * part;
    }

    /// Those that end together err together.
    fn sums(&self, seconds: f64) -> Sums {
        let together = |(sum, squares): (f64, f64)| sum * sum - squares;
        let together = together(self.short) + together(self.long) / 4.0;
        Sums {
            seconds: self.parts * seconds,
            variance: self.variance + together * seconds * seconds,
            waits: self.begun,
            most: self.blocked,
        }
    }
}

/// Looks, and says what each adds.
#[derive(Debug)]
pub struct Counter {
    /// Seconds from one look to the next, usually.
    refresh: f64,
    last: Option<Timestamp>,
    /// Nobody has looked since.
    is_gap: bool,
    looks: u64,
    next: u64,
    open: FxHashMap<Identity, Open>,
    waits: FxHashMap<Party, Wait>,
    statements: Statements,
    acted: Vec<(BackendId, Text)>,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            refresh: 1.0,
            last: None,
            is_gap: false,
            looks: 0,
            next: 1,
            open: FxHashMap::default(),
            waits: FxHashMap::default(),
            statements: Statements::default(),
            acted: Vec::new(),
        }
    }
}

impl Counter {
    /// From now on looks are this many seconds apart.
    pub fn refresh(&mut self, seconds: f64) {
        self.refresh = seconds;
    }

    /// What is between the last look and the next is not counted.
    pub fn gap(&mut self) {
        self.is_gap = true;
    }

    /// Somebody did something to a session, in these words.
    pub fn acted(&mut self, session: BackendId, words: &str) {
        if self.acted.len() >= ACTIONS {
            self.acted.remove(0);
        }
        let wait = self.waits.get(&Party::Backend(session.pid));
        let behind = wait.map(|wait| wait.behind.as_slice()).unwrap_or_default();
        let of_circle = self.open.iter_mut().filter(|(identity, open)| {
            identity.cause == Cause::Circle && behind.iter().any(|share| share.episode == open.number)
        });
        for (_, open) in of_circle {
            open.note = Some(harmless(words));
        }
        self.acted.push((session, harmless(words)));
    }

    /// What a look adds; none where its locks could not be read.
    pub fn look(&mut self, scene: Scene<'_>) -> Option<Tick> {
        let snapshot = scene.snapshot;
        if snapshot.locks.error.is_some() {
            return None;
        }
        self.looks += 1;
        let at = snapshot.locks.taken_at.unwrap_or(snapshot.taken_at);
        let passed = self.last.map_or(0.0, |last| (at - last).as_seconds_f64().max(0.0));
        let seconds = if std::mem::take(&mut self.is_gap) { 0.0 } else { passed.min(2.0 * self.refresh) };
        self.statements.look(&snapshot.backends.rows);
        let mut tick = Tick { at, missing: passed - seconds, ..Tick::default() };
        if scene.graph.waiting > 0 || !self.waits.is_empty() || !self.open.is_empty() {
            self.count(scene, seconds, &mut tick);
        }
        self.last = Some(at);
        Some(tick)
    }

    fn count(&mut self, scene: Scene<'_>, seconds: f64, tick: &mut Tick) {
        let mut sums: FxHashMap<u64, Sum> = FxHashMap::default();
        let mut total = Sum::default();
        let mut ends: FxHashMap<u64, Sum> = FxHashMap::default();
        let mut waits = FxHashMap::default();
        let mut episodes: FxHashMap<(Cause, usize), u64> = FxHashMap::default();
        for (party, causes) in causes(scene.graph) {
            let (tag, start) = awaited(scene.graph, party);
            let same = |wait: &Wait| {
                wait.tag == tag && (start.is_none() || wait.start.is_none() || wait.start == start)
            };
            let before = self.waits.remove(&party);
            let (before, ended) = match before {
                Some(wait) if same(&wait) => (Some(wait), None),
                other => (None, other),
            };
            if let Some(ended) = ended {
                end_wait(&ended, &mut sums, &mut ends);
            }
            let part = 1.0 / f64::from(u32::try_from(causes.len()).unwrap_or(u32::MAX)).max(1.0);
            let mut behind = Vec::with_capacity(causes.len());
            for cause in causes {
                let episode = *episodes.entry(cause).or_insert_with(|| self.episode(scene, cause, tick));
                let known =
                    before.iter().flat_map(|wait| &wait.behind).find(|share| share.episode == episode);
                let error = sums.entry(episode).or_default().see(part, known.copied(), seconds);
                behind.push(Share { episode, part, is_long: known.is_some(), error });
            }
            for share in before.iter().flat_map(|wait| &wait.behind) {
                if behind.iter().all(|now| now.episode != share.episode) {
                    sums.entry(share.episode).or_default().end(share.part, share.is_long);
                }
            }
            let whole = before.as_ref().map(|wait| wait.whole);
            let error = total.see(1.0, whole, seconds);
            let whole = Share { episode: 0, part: 1.0, is_long: whole.is_some(), error };
            waits.insert(party, Wait { tag, start, whole, behind });
        }
        for (_, ended) in std::mem::replace(&mut self.waits, waits) {
            end_wait(&ended, &mut sums, &mut ends);
        }
        tick.total = total.sums(seconds);
        tick.total.variance += ends.values().map(|sum| sum.sums(seconds).variance).sum::<f64>();
        self.tell(scene, seconds, &sums, tick);
    }

    /// The number of the episode of a cause on a lock; it may begin.
    fn episode(&mut self, scene: Scene<'_>, (cause, queue): (Cause, usize), tick: &mut Tick) -> u64 {
        let Scene { snapshot, graph, index, .. } = scene;
        let backend = backend_of(scene, cause);
        let Some(queue) = graph.queues.get(queue) else { return 0 };
        let awaited = row_behind(index, queue);
        // What a session holds outlives its transactions.
        let is_session = awaited.locktype == LockType::Advisory;
        let identity = Identity {
            cause,
            backend_start: backend.and_then(|backend| backend.backend_start),
            xact_start: backend.filter(|_| !is_session).and_then(|backend| backend.xact_start),
            lock: contended(awaited),
        };
        let state =
            (backend.and_then(|backend| backend.state), backend.and_then(|backend| backend.query_start));
        let looks = self.looks;
        if let Some(open) = self.open.get_mut(&identity) {
            open.look = looks;
            if open.state != state {
                (open.state, open.key) = (state, Arc::new(key(scene, cause, awaited)));
            }
            return open.number;
        }
        let number = self.next;
        self.next += 1;
        let now = tick.at;
        let earliest = self.last.unwrap_or(now);
        let waited = queue.waiters.iter().filter_map(|waiter| waiter.wait_start).min();
        let begin = waited.map_or(now, |waited| waited.clamp(earliest.min(now), now));
        let key = Arc::new(key(scene, cause, awaited));
        tick.begun.push(Begun {
            episode: number,
            pid: if let Cause::Root(party) = cause { party.pid() } else { 0 },
            backend_start: identity.backend_start,
            xact_start: identity.xact_start,
            who: harmless(&who(snapshot, index, cause, backend)),
            lock: Text::clone(&key.lock),
            at: begin,
        });
        self.open.insert(identity, Open { number, begin, look: looks, state, key, told: None, note: None });
        number
    }

    /// Puts the sums of all episodes into the tick, and closes those that are over.
    fn tell(&mut self, scene: Scene<'_>, seconds: f64, sums: &FxHashMap<u64, Sum>, tick: &mut Tick) {
        let looks = self.looks;
        for (identity, open) in &mut self.open {
            let pid = if let Cause::Root(Party::Backend(pid)) = identity.cause { pid } else { 0 };
            if open.look == looks && pid != 0 {
                for (at, text) in self.statements.after(pid, open.told) {
                    tick.ran.push(Ran { episode: open.number, at, statement: text });
                    open.told = at.or(open.told);
                }
            }
            if let Some(sum) = sums.get(&open.number) {
                let key = Arc::clone(&open.key);
                tick.costs.push(Cost { episode: open.number, key, sums: sum.sums(seconds) });
            }
            if looks - open.look > GAP {
                let (ending, note) = ending(scene, &self.acted, identity, open);
                tick.ended.push(Ended { episode: open.number, ending, note });
            }
        }
        self.open.retain(|_, open| looks - open.look <= GAP);
        tick.costs.sort_unstable_by_key(|cost| cost.episode);
        tick.ended.sort_unstable_by_key(|ended| ended.episode);
        // Those of one episode are in their order already.
        tick.ran.sort_by_key(|ran| ran.episode);
        if self.acted.is_empty() {
            return;
        }
        let live: FxHashSet<BackendId> = scene.snapshot.backends.rows.iter().map(Backend::id).collect();
        let open = &self.open;
        self.acted.retain(|(session, _)| {
            live.contains(session) || open.keys().any(|identity| is_of(identity, *session))
        });
    }
}

/// A wait is over: what of it fell to each episode, and all of it by the first of them.
fn end_wait(wait: &Wait, sums: &mut FxHashMap<u64, Sum>, ends: &mut FxHashMap<u64, Sum>) {
    for share in &wait.behind {
        sums.entry(share.episode).or_default().end(share.part, share.is_long);
    }
    let first = wait.behind.first().map_or(0, |share| share.episode);
    ends.entry(first).or_default().end(1.0, wait.whole.is_long);
}

/// For each who waits those whom that is blamed on, each with the queue that the chain begins at.
fn causes(graph: &WaitGraph) -> Vec<(Party, Vec<(Cause, usize)>)> {
    let nodes = &graph.tree.nodes;
    let waiting = nodes.iter().filter_map(|node| Some((node, node.waits?)));
    let mut all: Vec<(Party, Vec<(Cause, usize)>)> = Vec::with_capacity(nodes.len());
    let mut places: FxHashMap<Party, usize> = FxHashMap::default();
    for (node, _) in waiting.clone() {
        places.insert(node.party, all.len());
        all.push((node.party, Vec::new()));
    }
    for front in graph.fronts() {
        for (party, queue) in &front.behind {
            let Some((_, causes)) = places.get(party).and_then(|at| all.get_mut(*at)) else { continue };
            let room = ROOTS.saturating_sub(causes.len());
            causes.extend(front.roots.iter().take(room).map(|root| (Cause::Root(*root), *queue)));
        }
    }
    for ((node, (queue, _)), (_, causes)) in waiting.zip(&mut all) {
        if causes.is_empty() {
            let mut top = node;
            while let Some(parent) = top.parent.and_then(|parent| nodes.get(parent)) {
                top = parent;
            }
            // A circle is one episode, by the lock that its longest wait is for.
            causes.push(match (top.cycle, top.waits) {
                (Some(_), Some((first, _))) => (Cause::Circle, first),
                _ => (Cause::Nobody, queue),
            });
        }
    }
    all
}

/// What somebody waits for, and since when.
fn awaited(graph: &WaitGraph, party: Party) -> (LockTag, Option<Timestamp>) {
    let found = graph.wait_of(party);
    let start = found.and_then(|(queue, at)| queue.waiters.get(at)?.wait_start);
    (found.map_or_else(|| LockTag::new(LockType::Other), |(queue, _)| queue.tag), start)
}

/// What those wait for who wait in a queue: of a transaction the row behind it, where one of them tells.
fn row_behind<'a>(index: &'a SnapshotIndex, queue: &'a Queue) -> &'a LockTag {
    let rows = queue.waiters.iter().map(|waiter| index.awaited(&queue.tag, waiter.pid));
    rows.into_iter().find(|tag| **tag != queue.tag).unwrap_or(&queue.tag)
}

fn backend_of(scene: Scene<'_>, cause: Cause) -> Option<&Backend> {
    let Cause::Root(Party::Backend(pid)) = cause else { return None };
    scene.index.backend(scene.snapshot, pid)
}

fn who(snapshot: &Snapshot, index: &SnapshotIndex, cause: Cause, backend: Option<&Backend>) -> String {
    match cause {
        Cause::Root(Party::Backend(_)) => backend.map(words::who).unwrap_or_default(),
        Cause::Root(Party::Prepared(xact)) => match index.prepared(snapshot, xact) {
            Some(prepared) => format!("prepared '{}'", prepared.gid),
            None => format!("prepared {xact}"),
        },
        Cause::Circle => "sessions that wait for each other".to_owned(),
        Cause::Nobody => "nobody in the way".to_owned(),
    }
}

fn key(scene: Scene<'_>, cause: Cause, awaited: &LockTag) -> Key {
    let Scene { snapshot, index, names, .. } = scene;
    let backend = backend_of(scene, cause);
    let lock = harmless(&lock_waits::name(snapshot, names, backend, awaited));
    let doing = |doing: &str| Key { doing: doing.into(), lock: Text::clone(&lock), ..Key::default() };
    match cause {
        Cause::Circle => return doing("sessions that wait for each other"),
        Cause::Nobody => return doing("nobody in the way"),
        Cause::Root(Party::Prepared(xact)) => {
            let prepared = index.prepared(snapshot, xact);
            let text = |text: Option<&Text>| text.map(|text| harmless(text)).unwrap_or_default();
            return Key {
                role: text(prepared.and_then(|prepared| prepared.owner.as_ref())),
                database: text(prepared.and_then(|prepared| prepared.database.as_ref())),
                ..doing("prepared transaction")
            };
        }
        Cause::Root(Party::Backend(_)) => {}
    }
    let Some(backend) = backend else { return doing("not to be seen") };
    let text = |text: &Option<Text>| text.as_ref().map(|text| harmless(text)).unwrap_or_default();
    let query = backend.query.as_deref().unwrap_or_default();
    let kind = backend.backend_type.as_deref().filter(|kind| *kind != "client backend");
    let state = match backend.state {
        Some(state) if state.is_idle_in_transaction() => "idle in xact",
        Some(state) => state.as_str(),
        None => "",
    };
    Key {
        application: text(&backend.application),
        role: text(&backend.user),
        database: text(&backend.database),
        statement: fingerprint::fingerprint(query).into(),
        tag: fingerprint::tag(query).into(),
        ..doing(&harmless(kind.unwrap_or(state)))
    }
}

fn is_of(identity: &Identity, session: BackendId) -> bool {
    identity.cause == Cause::Root(Party::Backend(session.pid))
        && identity.backend_start == session.backend_start
}

/// How an episode ended.
fn ending(scene: Scene<'_>, acted: &[(BackendId, Text)], identity: &Identity, open: &Open) -> (Ending, Text) {
    if let Some((_, words)) = acted.iter().rev().find(|(session, _)| is_of(identity, *session)) {
        return (Ending::Action, Text::clone(words));
    }
    if let Some(note) = &open.note {
        return (Ending::Action, Text::clone(note));
    }
    let broken = scene.deadlocks.broken.iter().filter(|broken| broken.at >= open.begin);
    let is_part = |parties: &[Party]| match identity.cause {
        Cause::Circle => true,
        Cause::Root(party) => parties.contains(&party),
        Cause::Nobody => false,
    };
    let mut victims = broken.filter_map(|broken| broken.victims.as_ref());
    if victims.any(|victims| is_part(&victims.parties)) {
        return (Ending::Deadlock, Text::default());
    }
    let is_there = match identity.cause {
        Cause::Root(Party::Backend(pid)) => {
            let backend = scene.index.backend(scene.snapshot, pid);
            backend.is_some_and(|backend| backend.backend_start == identity.backend_start)
        }
        _ => true,
    };
    (Ending::Itself, if is_there { "" } else { "its session is gone" }.into())
}
