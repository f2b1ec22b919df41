use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cause::{Cause, SeenStatements, awaited, backend_of, causes, key, row_behind, statement, who};
use super::costs::{CostedWait, Costs, Sum};
use super::{BlameKey, Cost, Ending, EpisodeEnd, EpisodeStart, EpisodeStatement, GONE, SnapshotBlame};
use crate::model::awaited_locks::waits_by_mode;
use crate::model::backend::{Backend, BackendId, State};
use crate::model::event::harmless;
use crate::model::finding::Deadlocks;
use crate::model::lock::{LockTag, LockType};
use crate::model::lock_waits::contended;
use crate::model::view::SnapshotView;
use crate::model::wait_graph::Party;
use crate::model::{Text, Timestamp};
use crate::order::SortExt;

/// An episode is over after this many polls without a waiter behind it.
const GAP: u64 = 3;

/// Actions kept, because they may have ended an episode.
const ACTIONS: usize = 200;

/// A waiter is reported as in line if it holds up at least this many others.
const HELD_UP: u32 = 3;

/// Maximum number of such waiters reported for an episode.
const IN_LINE: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RootIdentity {
    cause: Cause,
    backend_start: Option<Timestamp>,
    xact_start: Option<Timestamp>,
    lock: LockTag,
}

#[derive(Debug, Default)]
struct OpenEpisode {
    number: u64,
    begin: Timestamp,
    poll: u64,
    /// The state and query start that the key was made from.
    state: (Option<State>, Option<Timestamp>),
    key: Arc<BlameKey>,
    /// The start of the last of its statements that was reported.
    noted_until: Option<Timestamp>,
    /// The last action on a session of the cycle, or on a waiter behind the episode, and the number of polls before it.
    note: Option<(Text, u64)>,
    /// What the first poll without a waiter showed of the blocker.
    left: Text,
    /// Processes already reported as in line behind it and holding up others.
    in_line: Vec<i32>,
}

#[derive(Debug)]
pub struct Counter {
    /// The usual interval between polls, in seconds.
    refresh: f64,
    last: Option<Timestamp>,
    is_gap: bool,
    polls: u64,
    next: u64,
    open: FxHashMap<RootIdentity, OpenEpisode>,
    waits: FxHashMap<Party, CostedWait>,
    statements: SeenStatements,
    acted: Vec<(BackendId, Text)>,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            refresh: 1.0,
            last: None,
            is_gap: false,
            polls: 0,
            next: 1,
            open: FxHashMap::default(),
            waits: FxHashMap::default(),
            statements: SeenStatements::default(),
            acted: Vec::new(),
        }
    }
}

impl Counter {
    pub fn refresh(&mut self, seconds: f64) {
        self.refresh = seconds;
    }

    /// Excludes the time between the last poll and the next.
    pub fn gap(&mut self) {
        self.is_gap = true;
    }

    pub fn acted(&mut self, session: BackendId, words: &str) {
        if self.acted.len() >= ACTIONS {
            self.acted.remove(0);
        }
        let wait = self.waits.get(&Party::Backend(session.pid));
        let behind = wait.map(|wait| wait.behind.as_slice()).unwrap_or_default();
        for open in
            self.open.values_mut().filter(|open| behind.iter().any(|share| share.episode == open.number))
        {
            open.note = Some((harmless(words), self.polls));
        }
        self.acted.push((session, harmless(words)));
    }

    pub fn update(&mut self, view: SnapshotView<'_>, deadlocks: &Deadlocks) -> Option<SnapshotBlame> {
        let snapshot = view.snapshot;
        if !snapshot.locks.is_known() {
            return None;
        }
        self.polls += 1;
        let at = snapshot.locks.taken_at.unwrap_or(snapshot.taken_at);
        let passed = self.last.map_or(0.0, |last| (at - last).as_seconds_f64().max(0.0));
        let seconds = if std::mem::take(&mut self.is_gap) { 0.0 } else { passed.min(2.0 * self.refresh) };
        self.statements.observe(snapshot.backends.last_rows());
        let mut tick = SnapshotBlame { at, missing: passed - seconds, ..SnapshotBlame::default() };
        if view.graph.waiting > 0 || !self.waits.is_empty() || !self.open.is_empty() {
            self.count((view, deadlocks), seconds, &mut tick);
        }
        self.last = Some(at);
        Some(tick)
    }

    fn count(
        &mut self,
        (view, deadlocks): (SnapshotView<'_>, &Deadlocks),
        seconds: f64,
        tick: &mut SnapshotBlame,
    ) {
        let mut costs = Costs { seconds, ..Costs::default() };
        let mut waits = FxHashMap::default();
        let mut episodes: FxHashMap<(Cause, usize), u64> = FxHashMap::default();
        let is_normal =
            |party: Party| view.graph.wait_of(party).is_some_and(|(queue, _)| view.is_normal(queue));
        for (party, causes) in causes(&view.graph).into_iter().filter(|(party, _)| !is_normal(*party)) {
            let (tag, start) = awaited(&view.graph, party);
            let same = |wait: &CostedWait| {
                wait.tag == tag && (start.is_none() || wait.start.is_none() || wait.start == start)
            };
            let before = match self.waits.remove(&party) {
                Some(wait) if same(&wait) => Some(wait),
                Some(another) => {
                    costs.end(&another);
                    None
                }
                None => None,
            };
            let causes = causes.into_iter();
            let behind: Vec<u64> = causes
                .map(|cause| *episodes.entry(cause).or_insert_with(|| self.episode(view, cause, tick)))
                .collect();
            waits.insert(party, CostedWait { tag, start, ..costs.see(before.as_ref(), &behind) });
        }
        for (_, ended) in std::mem::replace(&mut self.waits, waits) {
            costs.end(&ended);
        }
        tick.total = costs.total.sums(seconds);
        tick.total.variance += costs.ends.values().map(|sum| sum.sums(seconds).variance).sum::<f64>();
        self.note_queued(view, tick);
        self.note_ends((view, deadlocks), seconds, &costs.sums, tick);
    }

    /// Reports waiters that hold up others: these wait behind the root, but would not wait without that waiter.
    fn note_queued(&mut self, view: SnapshotView<'_>, tick: &mut SnapshotBlame) {
        let mut in_line: FxHashMap<u64, Vec<i32>> = FxHashMap::default();
        for queue in view.graph.queues.iter().filter(|queue| queue.waiters.len() > HELD_UP as usize) {
            for (place, _) in waits_by_mode(queue).into_iter().filter(|(_, count)| *count >= HELD_UP) {
                let Some(waiter) = queue.waiters.get(place) else { continue };
                for share in self.waits.get(&waiter.party).iter().flat_map(|wait| &wait.behind) {
                    in_line.entry(share.episode).or_default().push(waiter.pid);
                }
            }
        }
        for open in self.open.values_mut() {
            for pid in in_line.remove(&open.number).unwrap_or_default() {
                let Some(backend) = view.backend(pid) else { continue };
                if open.in_line.len() < IN_LINE && !open.in_line.contains(&pid) {
                    open.in_line.push(pid);
                    let statement = backend.query.as_ref().map(statement).unwrap_or_default();
                    let (episode, at) = (open.number, backend.query_start);
                    tick.ran.push(EpisodeStatement { episode, at, statement, in_line: pid });
                }
            }
        }
    }

    fn episode(
        &mut self,
        view: SnapshotView<'_>,
        (cause, queue): (Cause, usize),
        tick: &mut SnapshotBlame,
    ) -> u64 {
        let (snapshot, graph, index) = (view.snapshot, &view.graph, &view.index);
        let backend = backend_of(view, cause);
        let Some(queue) = graph.queues.get(queue) else { return 0 };
        let awaited = row_behind(index, queue);
        // A session-level lock outlives transactions.
        let is_session = awaited.locktype() == LockType::Advisory;
        let identity = RootIdentity {
            cause,
            backend_start: backend.and_then(|backend| backend.backend_start),
            xact_start: backend.filter(|_| !is_session).and_then(|backend| backend.xact_start),
            lock: contended(awaited),
        };
        let state =
            (backend.and_then(|backend| backend.state), backend.and_then(|backend| backend.query_start));
        let polls = self.polls;
        if let Some(open) = self.open.get_mut(&identity) {
            open.poll = polls;
            if open.state != state {
                (open.state, open.key) = (state, Arc::new(key(view, cause, queue)));
            }
            return open.number;
        }
        let number = self.next;
        self.next += 1;
        let now = tick.at;
        let earliest = self.last.unwrap_or(now);
        let waited = queue.waiters.iter().filter_map(|waiter| waiter.wait_start).min();
        let begin = waited.map_or(now, |waited| waited.clamp(earliest.min(now), now));
        let key = Arc::new(key(view, cause, queue));
        tick.begun.push(EpisodeStart {
            episode: number,
            pid: if let Cause::Root(party) = cause { party.pid() } else { 0 },
            backend_start: identity.backend_start,
            xact_start: identity.xact_start,
            who: harmless(&who(snapshot, index, cause, backend)),
            lock: Text::clone(&key.lock),
            at: begin,
        });
        self.open.insert(
            identity,
            OpenEpisode { number, begin, poll: polls, state, key, ..OpenEpisode::default() },
        );
        number
    }

    fn note_ends(
        &mut self,
        (view, deadlocks): (SnapshotView<'_>, &Deadlocks),
        seconds: f64,
        sums: &FxHashMap<u64, Sum>,
        tick: &mut SnapshotBlame,
    ) {
        let polls = self.polls;
        for (identity, open) in &mut self.open {
            let pid = if let Cause::Root(Party::Backend(pid)) = identity.cause { pid } else { 0 };
            if open.poll == polls && pid != 0 {
                for (at, text) in self.statements.after(pid, open.noted_until) {
                    tick.ran.push(EpisodeStatement { episode: open.number, at, statement: text, in_line: 0 });
                    open.noted_until = at.or(open.noted_until);
                }
            }
            if let Some(sum) = sums.get(&open.number) {
                let key = Arc::clone(&open.key);
                tick.costs.push(Cost { episode: open.number, key, sums: sum.sums(seconds) });
            }
            if polls - open.poll == 1 {
                open.left = left(view, identity);
            }
            if polls - open.poll > GAP {
                let (ending, note) = ending((view, deadlocks), &self.acted, identity, open);
                tick.ended.push(EpisodeEnd { episode: open.number, ending, note });
            }
        }
        self.open.retain(|_, open| polls - open.poll <= GAP);
        tick.costs.sort_unstable_by_key(|cost| cost.episode);
        tick.ended.sort_unstable_by_key(|ended| ended.episode);
        // A stable sort: those of one episode are already in order.
        tick.ran.order_by_key(|ran| ran.episode);
        if self.acted.is_empty() {
            return;
        }
        let live: FxHashSet<BackendId> = view.snapshot.backends.last_rows().iter().map(Backend::id).collect();
        let open = &self.open;
        self.acted.retain(|(session, _)| {
            live.contains(session) || open.keys().any(|identity| is_of(identity, *session))
        });
    }
}

fn is_of(identity: &RootIdentity, session: BackendId) -> bool {
    identity.cause == Cause::Root(Party::Backend(session.pid))
        && identity.backend_start == session.backend_start
}

fn ending(
    (_view, deadlocks): (SnapshotView<'_>, &Deadlocks),
    acted: &[(BackendId, Text)],
    identity: &RootIdentity,
    open: &OpenEpisode,
) -> (Ending, Text) {
    if let Some((_, words)) = acted.iter().rev().find(|(session, _)| is_of(identity, *session)) {
        return (Ending::Action, Text::clone(words));
    }
    // A cancel of a convoy's ALTER ends the waits behind the report; a cancel of one waiter of many ends nothing.
    let is_its_end = |acted: u64| identity.cause == Cause::WaitCycle || open.poll <= acted + 1;
    if let Some((note, _)) = open.note.as_ref().filter(|(_, acted)| is_its_end(*acted)) {
        return (Ending::Action, Text::clone(note));
    }
    let broken = deadlocks.broken.iter().filter(|broken| broken.at >= open.begin);
    let is_part = |parties: &[Party]| match identity.cause {
        Cause::WaitCycle => true,
        Cause::Root(party) => parties.contains(&party),
        Cause::NoHolder => false,
    };
    let mut victims = broken.filter_map(|broken| broken.victims.as_ref());
    if victims.any(|victims| is_part(&victims.parties)) {
        return (Ending::Deadlock, Text::default());
    }
    (Ending::Itself, Text::clone(&open.left))
}

/// What a snapshot shows of a former blocker; empty if nothing is known.
fn left(view: SnapshotView<'_>, identity: &RootIdentity) -> Text {
    let words = match identity.cause {
        Cause::Root(Party::Backend(pid)) => {
            let backend = view.index.backend(view.snapshot, pid);
            match backend.filter(|backend| backend.backend_start == identity.backend_start) {
                None => GONE,
                // A session-level lock, which no end of a transaction releases.
                Some(_) if identity.xact_start.is_none() => "",
                Some(backend) if backend.xact_start == identity.xact_start => {
                    "the waits ended; its transaction continued"
                }
                Some(backend) => end_of_transaction(backend),
            }
        }
        Cause::Root(Party::Prepared(xact)) if view.index.prepared(view.snapshot, xact).is_none() => {
            "it was committed or rolled back"
        }
        _ => "",
    };
    words.into()
}

/// How the session's transaction ended: for an idle session the server keeps the last statement.
fn end_of_transaction(backend: &Backend) -> &'static str {
    let last = backend.query.as_ref().filter(|_| backend.state == Some(State::Idle));
    let last = last.map_or("", |last| last.unredacted()).trim_end().trim_end_matches(';').trim();
    let is = |words: &[&str]| words.iter().any(|word| last.eq_ignore_ascii_case(word));
    if is(&["COMMIT", "END", "COMMIT TRANSACTION", "COMMIT WORK", "END TRANSACTION"]) {
        "COMMIT ended its transaction"
    } else if is(&["ROLLBACK", "ABORT", "ROLLBACK TRANSACTION", "ROLLBACK WORK"]) {
        "ROLLBACK ended its transaction"
    } else {
        "its transaction ended"
    }
}
