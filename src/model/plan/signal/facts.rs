use rustc_hash::FxHashMap;

use crate::model::backend::{Backend, State};
use crate::model::disclosure::{Channel, shown};
use crate::model::lock::{Lock, LockTag, LockType};
use crate::model::plan::{PlanEffect, PlanIndex, Verb};
use crate::model::wait_graph::{Party, Queue, Release};
use crate::model::words;
use crate::order::SortExt;
use crate::text::{self, count};

/// Maximum width of a query in a fact, in columns.
const QUERY: usize = 200;

pub(super) struct HeldByPid<'a> {
    of: FxHashMap<i32, Vec<&'a Lock>>,
    awaited: FxHashMap<LockTag, (usize, Option<i32>)>,
}

impl<'a> HeldByPid<'a> {
    pub(super) fn of(index: &PlanIndex<'a>, pids: impl Iterator<Item = i32>) -> Self {
        let mut of: FxHashMap<i32, Vec<&'a Lock>> = pids.map(|pid| (pid, Vec::new())).collect();
        for lock in index.snapshot.locks.last_rows().iter().filter(|lock| lock.granted) {
            let Some(pid) = lock.pid else { continue };
            let group = index.backend(pid).map_or(pid, Backend::group);
            if let Some(locks) = of.get_mut(&group) {
                locks.push(lock);
            }
        }
        let queues = index.graph.queues.iter();
        let first = |queue: &Queue| queue.waiters.first().map(|waiter| waiter.pid);
        let awaited = queues.map(|queue| (queue.tag, (queue.waiters.len(), first(queue)))).collect();
        Self { of, awaited }
    }

    /// Most important first: by number of waiters, then by strength.
    fn words(&self, index: &PlanIndex<'_>, pid: i32) -> String {
        // Every transaction holds a lock on its own id.
        let is_own = |lock: &&&Lock| lock.tag.locktype() != LockType::VirtualXid;
        let mut locks: Vec<&Lock> = self.of.get(&pid).into_iter().flatten().filter(is_own).copied().collect();
        let most = if index.snapshot.locks_omitted > 0 { "at least " } else { "" };
        if locks.is_empty() {
            return format!("holds {most}no lock");
        }
        locks.order_by_key(|lock| {
            let (awaited, _) = self.awaited.get(&lock.tag).copied().unwrap_or_default();
            let is_id = lock.tag.locktype() == LockType::TransactionId;
            (std::cmp::Reverse(awaited), is_id, std::cmp::Reverse(lock.mode), lock.tag)
        });
        let name = |lock: &&Lock| {
            let (waiters, first) = self.awaited.get(&lock.tag).copied().unwrap_or_default();
            let awaited = match waiters {
                0 => String::new(),
                1 => " (1 waits)".to_owned(),
                several => format!(" ({} wait)", count(several as u64)),
            };
            // For a lock on a transaction id, its waiters show which row it is about; what the holder itself waits for is another row.
            let name = index.lock_words(&lock.tag, pid, first);
            format!("{}{awaited}", words::request(lock.mode, &lock.tag, &name))
        };
        let named = locks.first().map(name).unwrap_or_default();
        let number = count(locks.len() as u64);
        match locks.len() {
            1 => format!("holds {most}1 lock: {named}"),
            _ => format!("holds {most}{number} locks: {named}, …"),
        }
    }
}

/// State, locks, client and query. Details of the transaction are in the effect on data.
pub(super) fn of(index: &PlanIndex<'_>, pid: i32, held: &HeldByPid<'_>) -> Vec<String> {
    let Some(backend) = index.backend(pid) else { return Vec::new() };
    let mut facts = vec![state(index, backend), held.words(index, pid)];
    facts.push(origin(index, backend));
    if let Some(query) = backend.query.as_ref().filter(|query| !query.is_blank()) {
        let last = match backend.state {
            Some(State::Active) => "query",
            _ => "last query",
        };
        let query =
            text::fit(&text::one_line_prefix(&shown(Channel::Screen, query), QUERY), QUERY).into_owned();
        facts.push(format!("{last}: {query}"));
    }
    facts
}

fn state(index: &PlanIndex<'_>, backend: &Backend) -> String {
    if let Some((queue, place)) = index.graph.wait_of(Party::Backend(backend.pid))
        && let Some(waiter) = queue.waiters.get(place)
    {
        let since = waiter.wait_start.map(|since| format!(" {}", index.age_text(since))).unwrap_or_default();
        let what = index.lock_words(&queue.tag, waiter.pid, Some(waiter.pid));
        return format!("waits{since} for {}", words::request(waiter.mode, &queue.tag, &what));
    }
    let Some(state) = backend.state else { return "its state is not known".to_owned() };
    let since = backend.state_change.map(|since| format!(" for {}", index.age_text(since)));
    let own = match (backend.wait_event_type.as_deref(), backend.wait_event.as_deref()) {
        (Some("Client"), Some("ClientRead")) | (None, _) => String::new(),
        (Some(kind), event) => format!(", waits on {kind} {}", event.unwrap_or("?")),
    };
    text::one_line(&format!("{}{}{own}", state.as_str(), since.unwrap_or_default())).into_owned()
}

fn origin(index: &PlanIndex<'_>, backend: &Backend) -> String {
    let mut words = Vec::new();
    words.extend(backend.database.as_deref().map(|database| format!("in {database}")));
    words.extend(backend.client.as_deref().map(|client| format!("from {client}")));
    words.extend(backend.backend_start.map(|start| format!("connected {} ago", index.age_text(start))));
    text::one_line(&words.join(", ")).into_owned()
}

const NAMED: usize = 3;

/// The effect on all other sessions.
///
/// Cancelling a query ends its transaction: `AbortCurrentTransaction` in `src/backend/access/transam/xact.c` releases the
/// locks at once, even in a transaction block whose client has yet to notice. Locks acquired before a savepoint stay, and
/// so do session-level advisory locks. Neither is visible from outside, unless the query is the whole transaction.
pub(in crate::model::plan) fn effect_of(index: &PlanIndex<'_>, verb: Verb, parties: &[Party]) -> PlanEffect {
    let release = index.release(verb, parties);
    let promise = index.promise_of(verb, parties);
    let blocks = match promise.blocked {
        // Sessions that wait for one another are all targets.
        0 if parties.len() > 1 => "no other session".to_owned(),
        0 => "no session".to_owned(),
        _ => promise.words().trim_start_matches("blocks ").to_owned(),
    };
    let named = named(index, verb, parties, &release);
    PlanEffect { release, blocks, named }
}

fn named(
    index: &PlanIndex<'_>,
    verb: Verb,
    parties: &[Party],
    release: &Release,
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let list = |lines: &mut Vec<_>, label: &'static str, parties: &[Party]| {
        if !parties.is_empty() {
            lines.push((label, some(index, parties)));
        }
    };
    let root = root(index, parties);
    list(&mut lines, "now", &release.now);
    list(&mut lines, "in turn", &release.in_turn);
    if !release.still.is_empty() && root.is_none() {
        list(&mut lines, "still", &release.still);
        list(&mut lines, "by", &release.others);
        if release.more {
            lines.push((
                "maybe by",
                "others that are not known yet: one of those above waits for several sessions".to_owned(),
            ));
        }
    }
    if !release.unsure.is_empty() {
        list(&mut lines, "unsure", &release.unsure);
        list(&mut lines, "maybe by", &release.possible);
    }
    if release.standby {
        lines.push(("by", "a synchronous standby: each of them waits for it when it commits".to_owned()));
    }
    if let [party] = parties
        && let Some(what) = index.awaited_words(*party)
        && !release.still.is_empty()
    {
        lines.push(("by", format!("{what}: each of them waits for it")));
    }
    if verb == Verb::Cancel && !release.unsure.is_empty() && release.possible.is_empty() && !release.standby {
        let why = "a cancel keeps session locks, and what was locked before a savepoint".to_owned();
        lines.push(("because", why));
    }
    if let Some(root) = root {
        let frees = match verb {
            _ if !release.now.is_empty() || !release.unsure.is_empty() => "",
            Verb::Cancel => "this frees no session; ",
            _ => "terminating this frees no session; ",
        };
        lines.push(("root", format!("{frees}the root is {root}")));
    }
    lines
}

/// `4466 app@web-0, 4467 app@web-1, 4468 app@web-2, 13 more`.
fn some(index: &PlanIndex<'_>, parties: &[Party]) -> String {
    let mut names: Vec<String> = parties.iter().take(NAMED).map(|party| index.party(*party)).collect();
    if let Some(more) = parties.len().checked_sub(NAMED).filter(|more| *more > 0) {
        names.push(format!("{} more", count(more as u64)));
    }
    names.join(", ")
}

fn root(index: &PlanIndex<'_>, parties: &[Party]) -> Option<String> {
    let [party] = parties else { return None };
    let above = index.graph.roots_above(*party);
    let first = *above.first()?;
    let name = index.party(first);
    let more = match above.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let root = index.graph.roots.iter().find(|root| root.party == first);
    let does = root.map(|root| index.promise(root).numbers(true)).unwrap_or_default();
    Some(format!("{name}{more}: {does}"))
}
