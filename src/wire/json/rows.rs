use std::hash::{DefaultHasher, Hash, Hasher};

use super::adapters;
use super::object::{self, Json, Object, Writer, exact, object};
use crate::model::backend::Backend;
use crate::model::event::{Event, Length};
use crate::model::finding::{Finding, Subject};
use crate::model::lease::LeaseId;
use crate::model::lock::{LockType, Prepared};
use crate::model::output::{Channel, shown};
use crate::model::rate_limit::{self, LimitId};
use crate::model::snapshot::{Pooling, Server, Snapshot};
use crate::model::snapshot_index::SnapshotIndex;
use crate::model::view::{Link, View};
use crate::model::wait_graph::Party;

/// `connections` are counted from the backends.
pub(super) fn server(server: &Server, connections: Option<u32>) -> impl Json {
    object!(
        server;
        host, port, version_num, version, in_recovery, database,
        connections = connections,
        max_connections = Some(server.max_connections).filter(|most| *most > 0),
        deadlocks = Some(server.deadlocks).filter(|many| *many > 0 || !server.deadlocks_of.is_empty()),
        pooler = match server.pooling {
            Pooling::None => None,
            Pooling::Sessions => Some("session"),
            Pooling::Transactions => Some("transaction"),
        },
        tls = server.tls.sslmode(),
    )
}

/// `why` is why it waits, one sentence each; empty if it does not wait.
pub(super) fn backend(row: &Backend, why: Vec<String>) -> impl Json {
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
pub(super) fn prepared(row: &Prepared, snapshot: &Snapshot) -> impl Json {
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

pub(super) fn finding(finding: &Finding, view: &View, gids: &Gids<'_>) -> impl Json {
    object!(
        finding;
        check, severity, summary,
        about = finding.about_in(Channel::Json),
        details,
        subject = subject(&finding.subject, view, gids),
    )
}

fn subject(subject: &Subject, view: &View, gids: &Gids<'_>) -> impl Json {
    Object(move |to: &mut Writer| match subject {
        Subject::Backend(id) => object!(id; kind = "backend", pid, backend_start).keys(to),
        Subject::Party(Party::Backend(pid)) => {
            object!(kind = "backend", pid, backend_start = None::<i32>).keys(to)
        }
        Subject::Party(party @ Party::Prepared(virtualtransaction)) => object!(
            kind = "prepared",
            gid = gids.gid(*party),
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
            let (source, id) = lease(view, *id).unzip();
            object!(kind = "lease", source, id).keys(to)
        }
        Subject::Item(item) => {
            object!(item; kind = "queue_item", table, id, id_text = exact(item.id)).keys(to)
        }
        Subject::Job(id) => {
            let (adapter, schema, id) = adapters::name(view, *id).unwrap_or_default();
            object!(kind = "job", adapter, schema, id).keys(to)
        }
        Subject::JobQueue(id) => {
            let (adapter, schema, queue) = adapters::queue(view, *id).unwrap_or_default();
            object!(kind = "job_queue", adapter, schema, queue).keys(to)
        }
        Subject::JobLease(id) => {
            let (adapter, schema, id) = adapters::lease_of(view, *id).unwrap_or_default();
            object!(kind = "job_lease", adapter, schema, id).keys(to)
        }
        Subject::JobSchedule(id) => {
            let (adapter, schema, id) = adapters::schedule_of(view, *id).unwrap_or_default();
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

#[derive(Debug, Clone)]
pub struct Gids<'a> {
    snapshot: &'a Snapshot,
    index: &'a SnapshotIndex,
}

impl<'a> Gids<'a> {
    pub fn of(snapshot: &'a Snapshot, index: &'a SnapshotIndex) -> Self {
        Self { snapshot, index }
    }

    pub fn prepared(&self, party: Party) -> Option<&'a Prepared> {
        match party {
            Party::Backend(_) => None,
            Party::Prepared(virtualtransaction) => self.index.prepared(self.snapshot, virtualtransaction),
        }
    }

    /// The name given to PREPARE TRANSACTION; `None` for a session, or if its row was not read.
    pub fn gid(&self, party: Party) -> Option<&'a str> {
        self.prepared(party).map(|row| &*row.gid)
    }
}

fn lease(view: &View, id: LeaseId) -> Option<(&str, &str)> {
    let row = view.leases.rows.iter().find(|row| row.id == id)?;
    Some((&row.source, &row.key))
}

fn limit(snapshot: &Snapshot, id: LimitId) -> Option<(&str, &str)> {
    let row = rate_limit::rows(snapshot).find(|row| row.id == id)?;
    Some((row.source, &row.limit.key))
}

// `snapshot --watch`: one line per snapshot, and the events between them.

/// The snapshot of a view as a line; `None` before the first.
pub fn look(view: &View, seq: u64, skipped: u64) -> Option<Result<String, serde_json::Error>> {
    let snapshot = view.snapshot.as_deref()?;
    let document = crate::wire::json::document(view, snapshot);
    Some(object::text(&Object(|to: &mut Writer| {
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

pub fn link(link: &Link) -> Result<String, serde_json::Error> {
    let (state, reason) = match link {
        Link::Connecting => ("connecting", None),
        Link::Live => ("live", None),
        Link::Down { reason, .. } => ("down", Some(reason)),
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
