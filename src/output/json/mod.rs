//! The snapshot as JSON. The format is a contract: keys can be added but never renamed. A key without a
//! value in `object!` is the name of a field of the model: when that field is renamed, the key stays, as `key = row.field`.
//!
//! Times are RFC 3339 with offset, durations are in seconds, names are those of the server.

mod adapters;
pub(in crate::output) mod locks;
pub(in crate::output) mod object;
mod tasks;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use object::{Json, JsonObject, Writer, exact, object};
use rustc_hash::FxHashMap;

use crate::model::Timestamp;
use crate::model::backend::Backend;
use crate::model::disclosure::{Channel, shown};
use crate::model::event::{Event, Length};
use crate::model::finding::{Finding, Subject};
use crate::model::lock::{LockType, Prepared};
use crate::model::rate_limit::{self, LimitId};
use crate::model::snapshot::{Pooling, Section, Snapshot};
use crate::model::view::{ConnectionState, View};
use crate::model::wait_graph::{Party, WaitGraph};
use crate::model::why::why;

pub use adapters::adapters;
pub use object::to_string as line;
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

impl SectionState<'_> {
    /// It is known if the rows are as of the time of the snapshot.
    fn object(&self) -> JsonObject<impl Fn(&mut Writer) -> object::Result> {
        object!(self; taken_at, known = self.taken_at.is_some() && self.error.is_none(), error)
    }

    fn all(parts: &[(Option<Timestamp>, Option<&str>)]) -> Self {
        let errors: Vec<&str> = parts.iter().filter_map(|(_, error)| *error).collect();
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

fn document(view: &View, snapshot: &Snapshot) -> JsonObject<impl Fn(&mut Writer) -> object::Result> {
    JsonObject(move |to: &mut Writer| {
        // Without current locks there is no current graph.
        let none = WaitGraph::default();
        let graph = if snapshot.locks.is_known() { &*view.graph } else { &none };
        let locks = &locks::LocksJson::of(snapshot, graph);
        let (edges, edges_omitted) = &graph.edges(QUEUE_EDGES);
        object!(
            snapshot;
            format = 1,
            taken_at,
            server = server(snapshot),
            backends[] = backends(view, snapshot, graph),
            prepared[] = readable(&snapshot.prepared).iter().map(|row| prepared(row, snapshot)),
            locks[] = locks.written(view),
            locks_omitted,
            queues[] = locks::queues(graph, locks),
            edges[] = edges.iter().map(|edge| locks::edge(edge, locks, view)),
            edges_omitted = edges_omitted,
            roots[] = locks::roots(view, graph, snapshot.taken_at),
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
            findings[] = view.findings.iter().map(|one| finding(one, view)),
            blame = locks::blame(&view.blame),
            sections = sections(snapshot),
        )
        .keys(to)
    })
}

/// Waiters at the front of each queue whose wait is explained: each explanation scans the whole queue.
const LONGEST: usize = 100;

fn backends(view: &View, snapshot: &Snapshot, graph: &WaitGraph) -> impl Iterator<Item = impl Json> {
    let waiters = graph.queues.iter().flat_map(|queue| queue.waiters.iter().take(LONGEST));
    let mut said: FxHashMap<i32, Vec<String>> =
        waiters.map(|waiter| (waiter.pid, why(view, waiter.party))).collect();
    let rows = readable(&snapshot.backends).iter();
    rows.map(move |row| backend(row, said.remove(&row.pid).unwrap_or_default()))
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

fn server(snapshot: &Snapshot) -> Option<impl Json> {
    let server = readable(&snapshot.server).first()?;
    Some(object!(
        server;
        host, port, version_num, version, in_recovery, database,
        // They are counted from the backends.
        connections = Some(server.connections).filter(|_| snapshot.backends.is_known()),
        max_connections = Some(server.max_connections).filter(|most| *most > 0),
        deadlocks = Some(server.deadlocks).filter(|many| *many > 0 || !server.deadlocks_of.is_empty()),
        pooler = match server.pooling {
            Pooling::None => None,
            Pooling::Sessions => Some("session"),
            Pooling::Transactions => Some("transaction"),
        },
        tls = server.tls.sslmode(),
    ))
}

/// `why` is why it waits, one sentence each; empty if it does not wait.
fn backend(row: &Backend, why: Vec<String>) -> impl Json {
    object!(
        row;
        pid, backend_start, leader_pid, database, user, application, client, backend_type, state,
        wait_event_type, wait_event, xact_start, query_start, state_change, backend_xid,
        backend_xmin, query_id,
        query_id_text = row.query_id.map(exact),
        query = row.query.as_ref().map(|query| shown(Channel::Json, query)),
        why = why,
    )
}

/// Its virtual transaction is `None` if the locks could not be read.
fn prepared(row: &Prepared, snapshot: &Snapshot) -> impl Json {
    let own = snapshot.locks.last_rows().iter().find(|lock| {
        lock.pid.is_none()
            && lock.tag.locktype() == LockType::TransactionId
            && lock.tag.transactionid() == Some(row.transaction)
    });
    object!(
        row;
        gid,
        virtualtransaction = own.map(|lock| lock.virtualtransaction.to_string()),
        database, owner, prepared,
    )
}

fn finding(finding: &Finding, view: &View) -> impl Json {
    object!(
        finding;
        check, severity, summary,
        about = finding.about_in(Channel::Json),
        details,
        subject = subject(&finding.subject, view),
    )
}

fn subject(subject: &Subject, view: &View) -> impl Json {
    JsonObject(move |to: &mut Writer| match subject {
        Subject::Backend(id) => object!(id; kind = "backend", pid, backend_start).keys(to),
        Subject::Party(Party::Backend(pid)) => {
            object!(kind = "backend", pid, backend_start = None::<i32>).keys(to)
        }
        Subject::Party(party @ Party::Prepared(virtualtransaction)) => object!(
            kind = "prepared",
            gid = gid(view, *party),
            virtualtransaction = virtualtransaction.to_string(),
        )
        .keys(to),
        Subject::Lock(tag) => object!(
            kind = "lock",
            locktype = tag.locktype(),
            database = tag.database(),
            relation = tag.relation(),
            key = tag.advisory_key(),
        )
        .keys(to),
        Subject::Task(task) => object!(task; kind = "task", table, id).keys(to),
        Subject::Lease(id) => {
            let (source, id) = view.lease(*id).map(|row| (&*row.source, &*row.key)).unzip();
            object!(kind = "lease", source, id).keys(to)
        }
        Subject::Item(item) => {
            object!(item; kind = "queue_item", table, id, id_text = exact(item.id)).keys(to)
        }
        Subject::Job(id) => {
            let row = view.adapters.rows.iter().find(|row| row.id == *id);
            let (adapter, schema, id) = of_system(view, row.map(|row| (row.place, &*row.job.id)));
            object!(kind = "job", adapter, schema, id).keys(to)
        }
        Subject::JobQueue(id) => {
            let row = view.adapters.queues.iter().find(|row| row.id == *id);
            let (adapter, schema, queue) = of_system(view, row.map(|row| (row.place, row.queue.as_deref())));
            object!(kind = "job_queue", adapter, schema, queue).keys(to)
        }
        Subject::JobLease(id) => {
            let row = view.adapters.leases.iter().find(|row| row.id == *id);
            let (adapter, schema, id) = of_system(view, row.map(|row| (row.place.0, &*row.key)));
            object!(kind = "job_lease", adapter, schema, id).keys(to)
        }
        Subject::JobSchedule(id) => {
            let row = view.adapters.schedules.iter().find(|row| row.id == *id);
            let (adapter, schema, id) = of_system(view, row.map(|row| (row.place.0, &*row.schedule.id)));
            object!(kind = "job_schedule", adapter, schema, id).keys(to)
        }
        Subject::Queue => object!(kind = "queue").keys(to),
        Subject::Limit(id) => {
            let name = view.snapshot.as_deref().and_then(|snapshot| limit(snapshot, *id));
            let (table, key) = name.unzip();
            object!(kind = "rate_limit", table, key).keys(to)
        }
        Subject::Generator(id) => object!(id; kind = "id_generator", table, worker_id = id.worker).keys(to),
        Subject::Server => object!(kind = "server").keys(to),
        Subject::Section(name) => object!(kind = "section", name).keys(to),
    })
}

/// The name given to PREPARE TRANSACTION; `None` for a session, or if its row was not read.
fn gid(view: &View, party: Party) -> Option<&str> {
    let Party::Prepared(virtualtransaction) = party else { return None };
    Some(&view.with_snapshot()?.prepared(virtualtransaction)?.gid)
}

/// The adapter and the schema of a row of a job system, before what identifies the row there.
fn of_system<K: Default>(view: &View, row: Option<(usize, K)>) -> (&str, &str, K) {
    let found = row.and_then(|(place, key)| {
        let installation = &view.snapshot.as_deref()?.adapters.get(place)?.installation;
        Some((&*installation.adapter.name, &*installation.schema, key))
    });
    found.unwrap_or_default()
}

fn limit(snapshot: &Snapshot, id: LimitId) -> Option<(&str, &str)> {
    let row = rate_limit::rows(snapshot).find(|row| row.id == id)?;
    Some((row.source, &row.limit.key))
}

// `snapshot --watch`: one line per snapshot, and the events between them.

/// The snapshot of a view as a line; `None` before the first.
pub fn snapshot_line(view: &View, seq: u64, skipped: u64) -> Option<Result<String, serde_json::Error>> {
    let snapshot = view.snapshot.as_deref()?;
    let document = document(view, snapshot);
    Some(object::text(&JsonObject(|to: &mut Writer| {
        object!(type = "look", seq).keys(to)?;
        if skipped > 0 {
            to.field("skipped", &skipped)?;
        }
        document.keys(to)
    })))
}

pub fn event(event: &Event) -> Result<String, serde_json::Error> {
    object::text(&object!(
        event;
        type = "event",
        number, at,
        event = event.kind,
        severity,
        text = event.text(),
        seconds = event.length.map(Length::seconds),
    ))
}

pub fn link(link: &ConnectionState) -> Result<String, serde_json::Error> {
    let (state, reason) = match link {
        ConnectionState::Connecting => ("connecting", None),
        ConnectionState::Live => ("live", None),
        ConnectionState::Down { reason, .. } => ("down", Some(reason)),
    };
    object::text(&object!(type = "link", state, reason))
}

/// Hash of a snapshot without its times: who waits for whom, the states of tasks, leases and items, and the findings.
pub fn fingerprint(view: &View) -> u64 {
    let mut hasher = DefaultHasher::new();
    for queue in &view.graph.queues {
        queue.tag.hash(&mut hasher);
        queue.holders.iter().for_each(|holder| holder.party.hash(&mut hasher));
        queue.waiters.iter().for_each(|waiter| (waiter.party, waiter.pid, waiter.mode).hash(&mut hasher));
    }
    view.tasks.rows.iter().for_each(|row| (row.task, row.again, row.state).hash(&mut hasher));
    view.leases.rows.iter().for_each(|row| (row.state as u8).hash(&mut hasher));
    view.queue.rows.iter().for_each(|row| (row.state as u8).hash(&mut hasher));
    for finding in view.findings.iter() {
        (finding.check, finding.severity as u8, finding.blocked).hash(&mut hasher);
    }
    hasher.finish()
}
