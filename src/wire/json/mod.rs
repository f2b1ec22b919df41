//! The snapshot as JSON. The format is a contract: keys can be added but never renamed. The types here are separate, so
//! that the model can change.
//!
//! Times are RFC 3339 with offset, durations are in seconds, names are those of the server.

mod adapters;
pub(in crate::wire) mod blame;
mod graph;
mod harmless;
mod leases;
mod lock_waits;
mod locks;
mod names;
mod queue;
mod recovery;
mod rows;
mod tasks;
pub mod watch;

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::model::Timestamp;
use crate::model::backend::Backend;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::systems::TableRows;
use crate::model::view::View;
use crate::model::wait_graph::WaitGraph;
use crate::model::why::why;
use crate::wire::gids::Gids;
pub use adapters::adapters;
pub use harmless::to_string as line;
pub use recovery::recovery;
use rows::Time;

/// Maximum queue edges written; their number can be the square of the number of waiters.
const QUEUE_EDGES: usize = 50_000;

#[derive(Debug, Serialize)]
struct Document<'a> {
    format: u32,
    taken_at: Time,
    server: Option<rows::Server<'a>>,
    backends: Vec<rows::BackendRow<'a>>,
    prepared: Vec<rows::PreparedRow<'a>>,
    locks: Vec<locks::Lock<'a>>,
    locks_omitted: u64,
    queues: Vec<graph::Queue>,
    edges: Vec<graph::Edge<'a>>,
    edges_omitted: u64,
    roots: Vec<graph::Root<'a>>,
    cycles: Vec<Vec<i32>>,
    tasks: Vec<tasks::Task<'a>>,
    executions: Vec<tasks::Execution<'a>>,
    leases: Vec<leases::Lease<'a>>,
    queue: queue::WorkQueue,
    queue_items: Vec<queue::Item<'a>>,
    rate_limits: Vec<queue::Limit<'a>>,
    id_generators: Vec<queue::Generator<'a>>,
    task_workers: Vec<lock_waits::Taker<'a>>,
    lock_waits: lock_waits::LockWaits<'a>,
    refusals: Vec<queue::Refused<'a>>,
    adapters: Vec<adapters::InstallationDocument<'a>>,
    findings: Vec<rows::Finding<'a>>,
    blame: Option<blame::Blame<'a>>,
    sections: BTreeMap<&'static str, SectionState<'a>>,
}

#[derive(Debug, Serialize)]
struct SectionState<'a> {
    taken_at: Option<Time>,
    /// The rows are as of the time of the snapshot.
    known: bool,
    error: Option<Cow<'a, str>>,
}

impl<'a> SectionState<'a> {
    fn new(taken_at: Option<Timestamp>, error: Option<Cow<'a, str>>) -> Self {
        Self { taken_at: taken_at.map(Time), known: taken_at.is_some() && error.is_none(), error }
    }

    fn of<T>(section: &'a Section<T>) -> Self {
        Self::new(section.taken_at, section.error.as_deref().map(Cow::Borrowed))
    }

    fn all(parts: impl Iterator<Item = (Option<Timestamp>, Option<&'a str>)>) -> Self {
        let parts: Vec<_> = parts.collect();
        let errors: Vec<&str> = parts.iter().filter_map(|(_, error)| *error).collect();
        let oldest = parts.iter().map(|(taken_at, _)| *taken_at).min().flatten();
        let error = (!errors.is_empty()).then(|| Cow::Owned(errors.join("; ")));
        Self::new(oldest, error)
    }

    fn together<T>(tables: &'a [TableRows<T>]) -> Option<Self> {
        let parts = tables.iter().map(|table| (table.section.taken_at, table.section.error.as_deref()));
        (!tables.is_empty()).then(|| Self::all(parts))
    }
}

/// The snapshot as one line of JSON that is safe to show on a terminal; `None` before the first snapshot.
///
/// # Errors
/// Not expected: no map has keys that are not text, and no number is invalid.
pub fn to_string(view: &View) -> Option<Result<String, serde_json::Error>> {
    view.snapshot.as_deref().map(|snapshot| harmless::to_string(&document(view, snapshot)))
}

fn document<'a>(view: &'a View, snapshot: &'a Snapshot) -> Document<'a> {
    let gids = Gids::of(snapshot, &view.index);
    // Without current locks there is no current graph.
    let none = WaitGraph::default();
    let graph = if snapshot.locks.is_known() { &*view.graph } else { &none };
    let locks = locks::Locks::of(snapshot, graph, &view.index, &view.lock_names, &gids);
    let (edges, edges_omitted) = graph::edges(graph, &locks, &gids, QUEUE_EDGES);
    Document {
        format: 1,
        taken_at: Time(snapshot.taken_at),
        server: server(snapshot),
        backends: backends(view, snapshot, graph),
        prepared: readable(&snapshot.prepared)
            .iter()
            .map(|row| rows::PreparedRow::of(row, snapshot))
            .collect(),
        queues: graph::queues(graph, &locks),
        locks: locks.rows,
        locks_omitted: snapshot.locks_omitted,
        edges,
        edges_omitted,
        roots: graph::roots(graph, &gids, snapshot.taken_at),
        cycles: graph.cycles.iter().map(|cycle| cycle.iter().map(|party| party.pid()).collect()).collect(),
        tasks: tasks::tasks(view, snapshot),
        executions: tasks::executions(view, snapshot),
        leases: leases::leases(view, snapshot),
        queue: queue::depth(snapshot),
        queue_items: queue::items(view, snapshot),
        rate_limits: queue::limits(snapshot),
        id_generators: queue::generators(snapshot),
        task_workers: lock_waits::workers(view, snapshot),
        lock_waits: lock_waits::lock_waits(view, snapshot),
        refusals: queue::refusals(snapshot),
        adapters: adapters::installations(view, snapshot),
        findings: view.findings.iter().map(|finding| rows::Finding::of(finding, view, &gids)).collect(),
        blame: blame::blame(&view.blame),
        sections: sections(snapshot),
    }
}

fn server(snapshot: &Snapshot) -> Option<rows::Server<'_>> {
    let server = readable(&snapshot.server).first()?;
    let connections = snapshot.backends.is_known().then_some(server.connections);
    Some(rows::Server::of(server, connections))
}

/// Waiters at the front of each queue whose wait is explained: each explanation scans the whole queue.
const SAID: usize = 100;

fn backends<'a>(view: &View, snapshot: &'a Snapshot, graph: &WaitGraph) -> Vec<rows::BackendRow<'a>> {
    let waiters = graph.queues.iter().flat_map(|queue| queue.waiters.iter().take(SAID));
    let mut said: FxHashMap<i32, Vec<String>> =
        waiters.map(|waiter| (waiter.pid, why(view, waiter.party))).collect();
    let row = |row: &'a Backend| {
        let mut written = rows::BackendRow::from(row);
        written.why = said.remove(&row.pid).unwrap_or_default();
        written
    };
    readable(&snapshot.backends).iter().map(row).collect()
}

fn sections(snapshot: &Snapshot) -> BTreeMap<&'static str, SectionState<'_>> {
    let mut sections = BTreeMap::from([
        ("server", SectionState::of(&snapshot.server)),
        ("backends", SectionState::of(&snapshot.backends)),
        ("locks", SectionState::of(&snapshot.locks)),
        ("prepared", SectionState::of(&snapshot.prepared)),
        ("tables", SectionState::of(&snapshot.detection.tables)),
        ("adapters", SectionState::of(&snapshot.detection.adapters)),
    ]);
    if !snapshot.task_sets.is_empty() {
        let tasks = tasks::state(snapshot, |set| (set.tasks.taken_at, set.tasks.error.as_deref()));
        let log = tasks::state(snapshot, |set| (set.executions.taken_at, set.executions.error.as_deref()));
        sections.extend([("tasks", tasks), ("executions", log)]);
    }
    let systems = &snapshot.systems;
    let others = [
        ("leases", SectionState::together(&systems.leases)),
        ("queue", SectionState::together(&systems.counts)),
        ("queue_items", SectionState::together(&systems.items)),
        ("rate_limits", SectionState::together(&systems.limits)),
        ("id_generators", SectionState::together(&systems.generators)),
        ("task_workers", SectionState::together(&systems.workers)),
        ("lock_waits", SectionState::together(&systems.contended)),
        ("refusals", SectionState::together(&systems.refusals)),
    ];
    sections.extend(others.into_iter().filter_map(|(name, state)| Some((name, state?))));
    let redis = &snapshot.systems.redis;
    if !redis.servers.is_empty() {
        let servers = redis.servers.iter().map(|server| (redis.read_at, server.error.as_deref()));
        sections.insert("redis", SectionState::all(servers));
    }
    sections
}

fn readable<T>(section: &Section<T>) -> &[T] {
    if section.is_known() { section.last_rows() } else { &[] }
}

#[cfg(test)]
mod tests;
