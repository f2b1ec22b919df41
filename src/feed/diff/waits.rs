use rustc_hash::{FxHashMap, FxHashSet};

use super::{SnapshotChange, of, seconds};
use crate::model::backend::{Backend, BackendId, State};
use crate::model::event::{EventBody, EventKind, Length, harmless};
use crate::model::finding::{Severity, Subject};
use crate::model::lock::{LockMode, LockTag, LockType};
use crate::model::wait_graph::{Party, Queue, Waiter};
use crate::model::{Text, Timestamp, words};

/// A process waits for at most one lock in one mode at a time.
type WaitKey = (i32, LockTag, LockMode);

#[derive(Debug, Default)]
pub(super) struct WaitChanges {
    waits: FxHashMap<WaitKey, TrackedWait>,
    polls: u64,
}

#[derive(Debug)]
struct TrackedWait {
    /// Start of the wait. `None` at first, until the server sets it.
    start: Option<Timestamp>,
    poll: u64,
    backend: BackendId,
    who: Text,
    /// Mode and lock, such as `AccessShare on accounts`.
    what: Text,
    /// Lower bound of the start.
    earliest: Timestamp,
    /// Start of its transaction, which identifies it.
    xact_start: Option<Timestamp>,
}

impl TrackedWait {
    /// Whether a later waiter is the same wait: a new wait has another start.
    fn continues_in(&self, later: &Waiter, before: Timestamp) -> bool {
        match (self.start, later.wait_start) {
            (Some(start), Some(later)) => start == later,
            // A wait lacks a start only at its beginning.
            (Some(_), None) => false,
            (None, Some(later)) => later <= before,
            (None, None) => true,
        }
    }
}

impl WaitChanges {
    pub(super) fn compare(&mut self, change: &SnapshotChange<'_>) -> Vec<EventBody> {
        self.polls += 1;
        let poll = self.polls;
        let seen = change.before.map_or(change.now(), |before| before.snapshot.taken_at);
        let mut ended = Vec::new();
        let mut begun = Vec::new();
        for queue in &change.after.graph.queues {
            for waiter in &queue.waiters {
                let key = (waiter.pid, queue.tag, waiter.mode);
                match self.waits.get_mut(&key) {
                    Some(wait) if wait.continues_in(waiter, seen) => {
                        wait.poll = poll;
                        wait.start = wait.start.or(waiter.wait_start);
                    }
                    Some(_) => {
                        ended.extend(self.waits.remove_entry(&key));
                        begun.push((queue, waiter));
                    }
                    None => begun.push((queue, waiter)),
                }
            }
        }
        ended.extend(self.waits.extract_if(|_, wait| wait.poll != poll));
        ended.sort_unstable_by_key(|(key, wait)| (wait.earliest, *key));
        let mut bodies = over(change, &ended);
        if !begun.is_empty() {
            let mut naming = Naming::new(change);
            for (queue, waiter) in begun {
                let (body, wait) = naming.begun(queue, waiter, poll);
                self.waits.insert((waiter.pid, queue.tag, waiter.mode), wait);
                bodies.push(body);
            }
        }
        bodies
    }
}

/// Words events of new waits, looking up each name once.
struct Naming<'a, 'b> {
    change: &'a SnapshotChange<'b>,
    above: FxHashMap<Party, Above>,
    /// `AccessShare on accounts`, without and with the blockers.
    words: FxHashMap<(LockTag, LockMode, Option<Above>), (Text, Text)>,
}

impl<'a, 'b> Naming<'a, 'b> {
    fn new(change: &'a SnapshotChange<'b>) -> Self {
        // An existing wait may have begun behind another session.
        let above = if change.is_first() { FxHashMap::default() } else { above(change) };
        Self { change, above, words: FxHashMap::default() }
    }

    fn begun(&mut self, queue: &Queue, waiter: &Waiter, poll: u64) -> (EventBody, TrackedWait) {
        let change = self.change;
        let who = change.who(Party::Backend(waiter.pid));
        let backend = change.backend(waiter.pid);
        let id = backend.map_or(BackendId { pid: waiter.pid, backend_start: None }, Backend::id);
        let above = self.above.get(&waiter.party).copied();
        let (what, text) = self.words(queue, waiter, above);
        let at = waiter.wait_start.unwrap_or_else(|| change.now());
        let body = EventBody {
            who: Text::clone(&who),
            what: text,
            subject: Some(Subject::Backend(id)),
            ..EventBody::new(at, EventKind::WaitBegun, Severity::Info, "")
        };
        let interval = chrono::TimeDelta::microseconds(micros(change.after.snapshot.poll_seconds));
        let earliest = waiter.wait_start.unwrap_or_else(|| change.now() - interval);
        let xact_start = backend.and_then(|backend| backend.xact_start);
        (body, TrackedWait { start: waiter.wait_start, poll, backend: id, who, what, earliest, xact_start })
    }

    fn words(&mut self, queue: &Queue, waiter: &Waiter, above: Option<Above>) -> (Text, Text) {
        let SnapshotChange { after, .. } = self.change;
        let tag = after.index.awaited(&queue.tag, waiter.pid);
        let key = (*tag, waiter.mode, above);
        if let Some((what, text)) = self.words.get(&key) {
            return (Text::clone(what), Text::clone(text));
        }
        let holder = queue.holders.first().and_then(|holder| self.change.backend(holder.party.pid()));
        let target = words::quoted(after.snapshot, &after.lock_names, tag, holder);
        let what = match tag.locktype() {
            LockType::TransactionId | LockType::VirtualXid => format!("{END}{target}"),
            _ => words::request(waiter.mode, tag, &target),
        };
        let name = |party: Party| match party {
            Party::Backend(pid) => pid.to_string(),
            party @ Party::Prepared(_) => self.change.who(party).to_string(),
        };
        let behind = match above {
            None => String::new(),
            Some(Above { next, root: Some(root) }) if next != root => {
                format!(" behind {}, root {}", name(next), name(root))
            }
            Some(Above { next, .. }) => format!(" behind {}", name(next)),
        };
        let words = (harmless(&what), harmless(&format!("began to wait for {what}{behind}")));
        self.words.insert(key, words.clone());
        words
    }
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn micros(seconds: f64) -> i64 {
    (seconds * 1e6) as i64
}

/// The blockers above a waiter: the next one and the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Above {
    next: Party,
    /// `None` if the topmost one waits itself, in a deadlock.
    root: Option<Party>,
}

/// The blockers above each waiter in the forest; visits each node once.
fn above(change: &SnapshotChange<'_>) -> FxHashMap<Party, Above> {
    let nodes = &change.after.graph.tree.nodes;
    let mut tops: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut path = Vec::new();
    for start in 0..nodes.len() {
        let mut at = start;
        let top = loop {
            if let Some(Some(top)) = tops.get(at) {
                break *top;
            }
            path.push(at);
            match nodes.get(at).and_then(|node| node.parent) {
                // Stop after as many steps as there are nodes: a cycle would never end.
                Some(parent) if path.len() <= nodes.len() => at = parent,
                _ => break at,
            }
        };
        for passed in path.drain(..) {
            if let Some(place) = tops.get_mut(passed) {
                *place = Some(top);
            }
        }
    }
    let above = nodes.iter().zip(tops).filter_map(|(node, top)| {
        let (next, top) = (nodes.get(node.parent?)?, nodes.get(top?)?);
        let root = top.cycle.is_none().then_some(top.party);
        Some((node.party, Above { next: next.party, root }))
    });
    above.collect()
}

fn over(change: &SnapshotChange<'_>, ended: &[(WaitKey, TrackedWait)]) -> Vec<EventBody> {
    if ended.is_empty() {
        return Vec::new();
    }
    let pids: FxHashSet<i32> = ended.iter().map(|((pid, ..), _)| *pid).collect();
    let locks = || change.after.snapshot.locks.last_rows().iter().filter(|lock| lock.granted);
    let mine = |pid: i32| pids.contains(&pid).then_some(pid);
    let has: FxHashSet<WaitKey> =
        locks().filter_map(|lock| Some((lock.pid.and_then(mine)?, lock.tag, lock.mode))).collect();
    // A lock on a transaction is released as soon as it is acquired. If the awaited transaction has ended and the waiter is
    // still in the same transaction, its wait succeeded. If granted locks were omitted from the snapshot, this is unknown.
    let has_all = change.after.snapshot.locks_omitted == 0;
    let is_transaction = |tag: &LockTag| tag.locktype() == LockType::TransactionId;
    let goes_on: FxHashSet<LockTag> =
        locks().map(|lock| lock.tag).filter(|tag| is_transaction(tag)).collect();
    let goes_on_itself = |wait: &TrackedWait| {
        let now = change.backend(wait.backend.pid).and_then(|backend| backend.xact_start);
        now.is_some() && now == wait.xact_start
    };
    let got = |key: &WaitKey, wait: &TrackedWait| {
        let has_come = has_all && is_transaction(&key.1) && !goes_on.contains(&key.1);
        has.contains(key) || has_come && goes_on_itself(wait)
    };
    ended.iter().map(|(key, wait)| one_over(change, wait, got(key, wait))).collect()
}

/// Whether the transaction failed: its statement was canceled, timed out, or had an error.
fn has_failed(change: &SnapshotChange<'_>, id: BackendId) -> bool {
    change.backend(id.pid).is_some_and(|backend| backend.state == Some(State::IdleInTransactionAborted))
}

const END: &str = "the end of the ";

fn one_over(change: &SnapshotChange<'_>, wait: &TrackedWait, has_it: bool) -> EventBody {
    let snapshot = change.after.snapshot;
    let what = match wait {
        _ if change.has_ended(wait.backend) => format!("disconnected, last seen waiting for {}", wait.what),
        _ if has_failed(change, wait.backend) => {
            format!("stopped waiting for {}: its statement failed", wait.what)
        }
        _ if has_it && wait.what.starts_with(END) => format!("continued after {}", wait.what),
        _ if has_it => format!("got {}", wait.what),
        // It may have acquired and released the lock, or its statement was canceled: no view shows which.
        _ => format!("stopped waiting for {} (acquired it or failed)", wait.what),
    };
    let now = snapshot.locks.taken_at.unwrap_or(snapshot.taken_at);
    EventBody {
        subject: Some(Subject::Backend(wait.backend)),
        length: Some(Length::AtMost(seconds(wait.start.unwrap_or(wait.earliest), now))),
        ..of(Text::clone(&wait.who), &what, now, EventKind::WaitEnded, Severity::Info)
    }
}
