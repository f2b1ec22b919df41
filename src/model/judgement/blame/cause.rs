use rustc_hash::FxHashMap;

use super::BlameKey;
use super::table::STATEMENTS;
use crate::model::backend::Backend;
use crate::model::disclosure::{Channel, shown, without_literals};
use crate::model::event::harmless;
use crate::model::lock::{LockTag, LockType};
use crate::model::snapshot::Snapshot;
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::statement::beginning;
use crate::model::view::SnapshotView;
use crate::model::wait_graph::{Party, Queue, WaitGraph};
use crate::model::{QueryText, Text, Timestamp, fingerprint, lock_waits, words};

/// A wait is split among at most this many roots, the worst ones.
const ROOTS: usize = 50;

const WAIT_CYCLE: &str = "sessions that wait for each other";

/// Maximum number of different values of a cycle's sessions that are listed.
const MEMBERS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// A party that blocks others and does not wait.
    Root(Party),
    WaitCycle,
    /// No holder blocks: the lock is about to be granted.
    NoHolder,
}

/// For each waiting party the causes, each with the queue at which the chain begins.
pub(super) fn causes(graph: &WaitGraph) -> Vec<(Party, Vec<(Cause, usize)>)> {
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
            // A cycle is one episode, by the lock of its longest wait.
            causes.push(match (top.cycle, top.waits) {
                (Some(_), Some((first, _))) => (Cause::WaitCycle, first),
                _ => (Cause::NoHolder, queue),
            });
        }
    }
    all
}

pub(super) fn awaited(graph: &WaitGraph, party: Party) -> (LockTag, Option<Timestamp>) {
    let found = graph.wait_of(party);
    let start = found.and_then(|(queue, at)| queue.waiters.get(at)?.wait_start);
    (found.map_or_else(|| LockTag::new(LockType::Other), |(queue, _)| queue.tag), start)
}

/// The lock of a queue; for a transaction the row behind it, if a waiter's tuple lock shows it.
pub(super) fn row_behind<'a>(index: &'a SnapshotIndex, queue: &'a Queue) -> &'a LockTag {
    let rows = queue.waiters.iter().map(|waiter| index.awaited(&queue.tag, waiter.pid));
    rows.into_iter().find(|tag| **tag != queue.tag).unwrap_or(&queue.tag)
}

pub(super) fn backend_of(view: SnapshotView<'_>, cause: Cause) -> Option<&Backend> {
    let Cause::Root(party) = cause else { return None };
    view.backend(party.pid())
}

pub(super) fn who(
    snapshot: &Snapshot,
    index: &SnapshotIndex,
    cause: Cause,
    backend: Option<&Backend>,
) -> String {
    match cause {
        Cause::Root(Party::Backend(_)) => backend.map(words::who).unwrap_or_default(),
        Cause::Root(Party::Prepared(xact)) => match index.prepared(snapshot, xact) {
            Some(prepared) => format!("prepared '{}'", prepared.gid),
            None => format!("prepared {xact}"),
        },
        Cause::WaitCycle => WAIT_CYCLE.to_owned(),
        Cause::NoHolder => "no blocker found".to_owned(),
    }
}

pub(super) fn key(view: SnapshotView<'_>, cause: Cause, queue: &Queue) -> BlameKey {
    let (snapshot, index, names) = (view.snapshot, &view.index, &view.lock_names);
    let backend = backend_of(view, cause);
    let awaited = row_behind(index, queue);
    let lock = harmless(&lock_waits::name(snapshot, names, backend, awaited));
    let doing =
        |doing: &str| BlameKey { doing: doing.into(), lock: Text::clone(&lock), ..BlameKey::default() };
    match cause {
        Cause::WaitCycle => {
            return BlameKey {
                doing: WAIT_CYCLE.into(),
                lock: Text::clone(&lock),
                ..wait_cycle(view, queue)
            };
        }
        Cause::NoHolder => return doing("no blocker found"),
        Cause::Root(Party::Prepared(xact)) => {
            let prepared = index.prepared(snapshot, xact);
            let text = |text: Option<&Text>| text.map(|text| harmless(text)).unwrap_or_default();
            return BlameKey {
                role: text(prepared.and_then(|prepared| prepared.owner.as_ref())),
                database: text(prepared.and_then(|prepared| prepared.database.as_ref())),
                ..doing("prepared transaction")
            };
        }
        Cause::Root(Party::Backend(_)) => {}
    }
    let Some(backend) = backend else { return doing("unknown (session ended)") };
    let kind = backend.backend_type.as_deref().filter(|kind| *kind != "client backend");
    let state = match backend.state {
        Some(state) if state.is_idle_in_transaction() => "idle in xact",
        Some(state) => state.as_str(),
        None => "",
    };
    BlameKey { doing: harmless(kind.unwrap_or(state)), lock, ..session(backend) }
}

fn session(backend: &Backend) -> BlameKey {
    let text = |text: &Option<Text>| text.as_ref().map(|text| harmless(text)).unwrap_or_default();
    let query = backend.query.as_ref().map_or("", |query| query.unredacted());
    BlameKey {
        application: text(&backend.application),
        role: text(&backend.user),
        database: text(&backend.database),
        statement: fingerprint::fingerprint(query).into(),
        tag: fingerprint::tag(query).into(),
        ..BlameKey::default()
    }
}

/// The common values of the sessions in a cycle, whose longest wait is in this queue; if they differ, the first different
/// values.
fn wait_cycle(view: SnapshotView<'_>, queue: &Queue) -> BlameKey {
    let is_it = |cycle: &&Vec<Party>| {
        cycle
            .first()
            .and_then(|first| view.graph.wait_of(*first))
            .is_some_and(|(first, _)| first.tag == queue.tag)
    };
    let members = view.graph.cycles.iter().find(is_it).map(Vec::as_slice).unwrap_or_default();
    let backends = members.iter().filter_map(|member| view.backend(member.pid()));
    let keys: Vec<BlameKey> = backends.map(session).collect();
    let common = |part: fn(&BlameKey) -> &Text| -> Text {
        let mut parts: Vec<&str> =
            keys.iter().map(|key| &**part(key)).filter(|part| !part.is_empty()).collect();
        parts.sort_unstable();
        parts.dedup();
        let more = if parts.len() > MEMBERS { " and others" } else { "" };
        parts.truncate(MEMBERS);
        format!("{}{more}", parts.join(" | ")).into()
    };
    BlameKey {
        application: common(|key| &key.application),
        role: common(|key| &key.role),
        database: common(|key| &key.database),
        statement: common(|key| &key.statement),
        tag: common(|key| &key.tag),
        ..BlameKey::default()
    }
}

/// Bytes of a statement that are kept. A server can be configured to keep a megabyte of each.
const LENGTH: usize = 2_000;

/// Columns of a statement that are shown.
const LONGEST: usize = 500;

#[derive(Debug)]
struct SeenTransaction {
    backend_start: Option<Timestamp>,
    xact_start: Timestamp,
    poll: u64,
    statements: Vec<(Option<Timestamp>, QueryText)>,
}

/// The statements seen in the transactions of sessions. The server keeps only the last one; the one that took a lock was
/// often replaced by the time others wait for it.
#[derive(Debug, Default)]
pub(super) struct SeenStatements {
    open: FxHashMap<i32, SeenTransaction>,
    polls: u64,
}

impl SeenStatements {
    pub(super) fn observe(&mut self, backends: &[Backend]) {
        self.polls += 1;
        let poll = self.polls;
        for backend in backends {
            let Some(xact_start) = backend.xact_start else { continue };
            let transaction =
                self.open.entry(backend.pid).or_insert_with(|| SeenTransaction::new(backend, xact_start));
            if (transaction.backend_start, transaction.xact_start) != (backend.backend_start, xact_start) {
                *transaction = SeenTransaction::new(backend, xact_start);
            }
            transaction.poll = poll;
            transaction.see(backend);
        }
        self.open.retain(|_, transaction| transaction.poll == poll);
    }

    /// Statements of a session's transaction that began after a point in time, oldest first, each as one printable line.
    pub(super) fn after(
        &self,
        pid: i32,
        moment: Option<Timestamp>,
    ) -> impl Iterator<Item = (Option<Timestamp>, Text)> {
        let statements = self.open.get(&pid).map(|transaction| transaction.statements.as_slice());
        let later =
            statements.unwrap_or_default().iter().filter(move |(at, _)| moment.is_none() || *at > moment);
        later.map(|(at, query)| (*at, statement(query)))
    }
}

pub(super) fn statement(query: &QueryText) -> Text {
    crate::text::one_line_prefix(&shown(Channel::Blame, query), LONGEST).into()
}

impl SeenTransaction {
    fn new(backend: &Backend, xact_start: Timestamp) -> Self {
        Self { backend_start: backend.backend_start, xact_start, poll: 0, statements: Vec::new() }
    }

    fn see(&mut self, backend: &Backend) {
        let Some(query) = backend.query.as_ref().filter(|query| query.bytes() > 0) else { return };
        if self.statements.last().is_some_and(|(at, _)| *at == backend.query_start) {
            return;
        }
        // The beginning of a long statement does not show whether it contains a secret: it is kept without literals.
        let text = if query.bytes() <= LENGTH {
            query.clone()
        } else {
            without_literals(beginning(query.unredacted(), LENGTH)).into()
        };
        if self.statements.len() >= STATEMENTS {
            self.statements.remove(STATEMENTS / 2);
        }
        self.statements.push((backend.query_start, text));
    }
}
