//! The snapshot as JSON. The format is a contract: keys can be added but never renamed. A key without a
//! value in `object!` is the name of a field of the model: when that field is renamed, the key stays, as `key = row.field`.
//!
//! Times are RFC 3339 with offset, durations are in seconds, names are those of the server.

mod adapters;
pub(in crate::wire) mod locks;
pub(in crate::wire) mod object;
pub mod rows;
mod tasks;

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::model::Timestamp;
use crate::model::snapshot::{Section, Snapshot};
use crate::model::view::View;
use crate::model::wait_graph::WaitGraph;
use crate::model::why::why;
pub use adapters::adapters;
pub use object::to_string as line;
use object::{Json, Object, Writer, object};
use rows::Gids;
pub use tasks::recovery;

/// Maximum queue edges written; their number can be the square of the number of waiters.
const QUEUE_EDGES: usize = 50_000;

struct SectionState<'a> {
    taken_at: Option<Timestamp>,
    error: Option<Cow<'a, str>>,
}

impl Json for SectionState<'_> {
    fn write(&self, to: &mut Writer) -> object::Result {
        self.object().write(to)
    }
}

impl<'a> SectionState<'a> {
    /// It is known if the rows are as of the time of the snapshot.
    fn object(&self) -> Object<impl Fn(&mut Writer) -> object::Result> {
        object!(self; taken_at, known = self.taken_at.is_some() && self.error.is_none(), error)
    }

    fn all(parts: &[(Option<Timestamp>, Option<Cow<'a, str>>)]) -> Self {
        let errors: Vec<&str> = parts.iter().filter_map(|(_, error)| error.as_deref()).collect();
        let taken_at = parts.iter().map(|(taken_at, _)| *taken_at).min().flatten();
        let error = (!errors.is_empty()).then(|| Cow::Owned(errors.join("; ")));
        Self { taken_at, error }
    }
}

/// The snapshot as one line of JSON that is safe to show on a terminal; `None` before the first snapshot. An error is not
/// expected: no map has keys that are not text, and no number is invalid.
pub fn to_string(view: &View) -> Option<Result<String, serde_json::Error>> {
    view.snapshot.as_deref().map(|snapshot| object::text(&document(view, snapshot)))
}

fn document(view: &View, snapshot: &Snapshot) -> Object<impl Fn(&mut Writer) -> object::Result> {
    Object(move |to: &mut Writer| {
        let gids = &Gids::of(snapshot, &view.index);
        // Without current locks there is no current graph.
        let none = WaitGraph::default();
        let graph = if snapshot.locks.is_known() { &*view.graph } else { &none };
        let locks = &locks::Locks::of(snapshot, graph);
        let (edges, edges_omitted) = &graph.edges(QUEUE_EDGES);
        object!(
            snapshot;
            format = 1,
            taken_at,
            server = server(snapshot),
            backends[] = backends(view, snapshot, graph),
            prepared[] = readable(&snapshot.prepared).iter().map(|row| rows::prepared(row, snapshot)),
            locks[] = locks.written(view, gids),
            locks_omitted,
            queues[] = locks::queues(graph, locks),
            edges[] = edges.iter().map(|edge| locks::edge(edge, locks, gids)),
            edges_omitted = edges_omitted,
            roots[] = locks::roots((view, graph), gids, snapshot.taken_at),
            cycles[] = graph.cycles.iter().map(|cycle| cycle.iter().map(|party| party.pid()).collect::<Vec<_>>()),
            tasks[] = tasks::tasks(view, snapshot),
            executions[] = tasks::executions(view, snapshot),
            leases[] = tasks::leases(view, snapshot),
            queue = tasks::depth(snapshot),
            queue_items[] = tasks::items(view, snapshot),
            rate_limits[] = tasks::limits(snapshot),
            id_generators[] = tasks::generators(snapshot),
            task_workers[] = locks::workers(view, snapshot),
            lock_waits = locks::lock_waits(view, snapshot),
            refusals[] = tasks::refusals(snapshot),
            adapters[] = adapters::installations(view, snapshot),
            findings[] = view.findings.iter().map(|finding| rows::finding(finding, view, gids)),
            blame = locks::blame(&view.blame),
            sections = sections(snapshot),
        )
        .keys(to)
    })
}

fn server(snapshot: &Snapshot) -> Option<impl Json> {
    let server = readable(&snapshot.server).first()?;
    let connections = snapshot.backends.is_known().then_some(server.connections);
    Some(rows::server(server, connections))
}

/// Waiters at the front of each queue whose wait is explained: each explanation scans the whole queue.
const SAID: usize = 100;

fn backends(view: &View, snapshot: &Snapshot, graph: &WaitGraph) -> impl Iterator<Item = impl Json> {
    let waiters = graph.queues.iter().flat_map(|queue| queue.waiters.iter().take(SAID));
    let mut said: FxHashMap<i32, Vec<String>> =
        waiters.map(|waiter| (waiter.pid, why(view, waiter.party))).collect();
    let rows = readable(&snapshot.backends).iter();
    rows.map(move |row| rows::backend(row, said.remove(&row.pid).unwrap_or_default()))
}

/// Each with the times and errors of all its tables. Those of the parts of job systems are with their installation.
fn sections(snapshot: &Snapshot) -> BTreeMap<&'static str, SectionState<'_>> {
    let mut sections = BTreeMap::<_, Vec<_>>::new();
    let reads = snapshot.sections();
    for read in reads.into_iter().filter(|read| read.section != "adapters" || read.of.is_none()) {
        sections.entry(read.section).or_default().push((read.taken_at, read.error));
    }
    sections.into_iter().map(|(name, parts)| (name, SectionState::all(&parts))).collect()
}

fn readable<T>(section: &Section<T>) -> &[T] {
    if section.is_known() { section.last_rows() } else { &[] }
}

#[cfg(test)]
mod tests;
