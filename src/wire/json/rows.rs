use super::object::{Json, Object, Writer, exact, object};
use super::{adapters, names};
use crate::model::backend::Backend;
use crate::model::finding::{Finding, Subject};
use crate::model::lock::{LockType, Prepared};
use crate::model::output::{Channel, shown};
use crate::model::snapshot::{Pooling, Server, Snapshot};
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::wire::gids::Gids;

/// `connections` are counted from the backends.
pub(super) fn server(server: &Server, connections: Option<u32>) -> impl Json {
    object!(
        server;
        host,
        port,
        version_num,
        version,
        in_recovery,
        database,
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
        pid,
        backend_start,
        leader_pid,
        database,
        user,
        application,
        client,
        backend_type,
        state,
        wait_event_type,
        wait_event,
        xact_start,
        query_start,
        state_change,
        backend_xid,
        backend_xmin,
        query_id,
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
        database,
        owner,
        prepared,
    )
}

pub(super) fn finding(finding: &Finding, view: &View, gids: &Gids<'_>) -> impl Json {
    object!(
        finding;
        check,
        severity,
        summary,
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
            let (source, id) = names::lease(view, *id).unzip();
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
        Subject::Queue => object!(kind = "queue").keys(to),
        Subject::Limit(id) => {
            let name = view.snapshot.as_deref().and_then(|snapshot| names::limit(snapshot, *id));
            let (table, key) = name.unzip();
            object!(kind = "rate_limit", table, key).keys(to)
        }
        Subject::Generator(id) => object!(id; kind = "id_generator", table, worker_id = id.worker).keys(to),
        Subject::Server => object!(kind = "server").keys(to),
        Subject::Section(name) => object!(kind = "section", name).keys(to),
    })
}
