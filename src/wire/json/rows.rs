use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::model::Timestamp;
use crate::model::finding::{self, Severity, Subject};
use crate::model::lock::{self, LockType};
use crate::model::output::{Channel, shown};
use crate::model::snapshot::{self, Snapshot};
use crate::model::view::View;
use crate::model::wait_graph::Party;
use crate::model::{backend, lock_key};
use crate::wire::gids::Gids;

/// A time: RFC 3339 with offset and microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time(pub(super) Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339_opts(chrono::SecondsFormat::Micros, false))
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Server<'a> {
    host: &'a str,
    port: u16,
    version_num: u32,
    version: &'a str,
    in_recovery: bool,
    database: &'a str,
    /// Counted from the backends.
    connections: Option<u32>,
    max_connections: Option<u32>,
    deadlocks: Option<u64>,
    pooler: Option<&'static str>,
    tls: Option<&'static str>,
}

impl<'a> Server<'a> {
    pub(super) fn of(server: &'a snapshot::Server, connections: Option<u32>) -> Self {
        Self {
            host: &server.host,
            port: server.port,
            version_num: server.version_num,
            version: &server.version,
            in_recovery: server.in_recovery,
            database: &server.database,
            connections,
            max_connections: Some(server.max_connections).filter(|most| *most > 0),
            deadlocks: Some(server.deadlocks).filter(|many| *many > 0 || !server.deadlocks_of.is_empty()),
            pooler: match server.pooling {
                snapshot::Pooling::None => None,
                snapshot::Pooling::Sessions => Some("session"),
                snapshot::Pooling::Transactions => Some("transaction"),
            },
            tls: server.tls.sslmode(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct BackendRow<'a> {
    pid: i32,
    backend_start: Option<Time>,
    leader_pid: Option<i32>,
    database: Option<&'a str>,
    user: Option<&'a str>,
    application: Option<&'a str>,
    client: Option<&'a str>,
    backend_type: Option<&'a str>,
    state: Option<&'static str>,
    wait_event_type: Option<&'a str>,
    wait_event: Option<&'a str>,
    xact_start: Option<Time>,
    query_start: Option<Time>,
    state_change: Option<Time>,
    backend_xid: Option<u32>,
    backend_xmin: Option<u32>,
    query_id: Option<i64>,
    query_id_text: Option<String>,
    query: Option<Cow<'a, str>>,
    /// Why it waits, one sentence each; empty if it does not wait.
    pub(super) why: Vec<String>,
}

impl<'a> From<&'a backend::Backend> for BackendRow<'a> {
    fn from(row: &'a backend::Backend) -> Self {
        Self {
            pid: row.pid,
            backend_start: row.backend_start.map(Time),
            leader_pid: row.leader_pid,
            database: row.database.as_deref(),
            user: row.user.as_deref(),
            application: row.application.as_deref(),
            client: row.client.as_deref(),
            backend_type: row.backend_type.as_deref(),
            state: row.state.map(backend::State::as_str),
            wait_event_type: row.wait_event_type.as_deref(),
            wait_event: row.wait_event.as_deref(),
            xact_start: row.xact_start.map(Time),
            query_start: row.query_start.map(Time),
            state_change: row.state_change.map(Time),
            backend_xid: row.backend_xid,
            backend_xmin: row.backend_xmin,
            query_id: row.query_id,
            query_id_text: row.query_id.map(exact),
            query: row.query.as_ref().map(|query| shown(Channel::Json, query)),
            why: Vec::new(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct PreparedRow<'a> {
    gid: &'a str,
    /// `None` if the locks could not be read.
    virtualtransaction: Option<String>,
    database: Option<&'a str>,
    owner: Option<&'a str>,
    prepared: Option<Time>,
}

impl<'a> PreparedRow<'a> {
    pub(super) fn of(row: &'a lock::Prepared, snapshot: &Snapshot) -> Self {
        let own = snapshot.locks.last_rows().iter().find(|lock| {
            lock.pid.is_none()
                && lock.tag.locktype() == LockType::TransactionId
                && lock.tag.transactionid() == Some(row.transaction)
        });
        Self {
            gid: &row.gid,
            virtualtransaction: own.map(|lock| lock.virtualtransaction.to_string()),
            database: row.database.as_deref(),
            owner: row.owner.as_deref(),
            prepared: row.prepared.map(Time),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Finding<'a> {
    check: &'static str,
    severity: &'static str,
    summary: &'a str,
    about: Cow<'a, str>,
    details: Vec<&'a str>,
    subject: SubjectShape<'a>,
}

pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum SubjectShape<'a> {
    Backend {
        pid: i32,
        backend_start: Option<Time>,
    },
    Prepared {
        gid: Option<&'a str>,
        virtualtransaction: String,
    },
    Task {
        table: u32,
        id: i64,
    },
    Lease {
        source: Option<&'a str>,
        id: Option<&'a str>,
    },
    #[serde(rename = "queue_item")]
    Item {
        table: u32,
        id: i64,
        id_text: String,
    },
    Queue,
    Job {
        adapter: &'a str,
        schema: &'a str,
        id: &'a str,
    },
    JobQueue {
        adapter: &'a str,
        schema: &'a str,
        queue: Option<&'a str>,
    },
    JobLease {
        adapter: &'a str,
        schema: &'a str,
        id: &'a str,
    },
    RateLimit {
        table: Option<&'a str>,
        key: Option<&'a str>,
    },
    IdGenerator {
        table: u32,
        worker_id: i64,
    },
    Lock {
        locktype: &'static str,
        database: Option<u32>,
        relation: Option<u32>,
        key: Option<Key>,
    },
    Server,
    Section {
        name: &'static str,
    },
}

impl<'a> Finding<'a> {
    pub(super) fn of(finding: &'a finding::Finding, view: &'a View, gids: &Gids<'a>) -> Self {
        Self {
            check: finding.check,
            severity: severity(finding.severity),
            summary: &finding.summary,
            about: finding.about_in(Channel::Json),
            details: finding.details.iter().map(|line| &**line).collect(),
            subject: match &finding.subject {
                Subject::Backend(id) => {
                    SubjectShape::Backend { pid: id.pid, backend_start: id.backend_start.map(Time) }
                }
                Subject::Party(Party::Backend(pid)) => {
                    SubjectShape::Backend { pid: *pid, backend_start: None }
                }
                Subject::Party(party @ Party::Prepared(virtualtransaction)) => SubjectShape::Prepared {
                    gid: gids.gid(*party),
                    virtualtransaction: virtualtransaction.to_string(),
                },
                Subject::Lock(tag) => SubjectShape::Lock {
                    locktype: tag.locktype().as_str(),
                    database: tag.database(),
                    relation: tag.relation(),
                    key: tag.advisory_key().map(Into::into),
                },
                Subject::Task(task) => SubjectShape::Task { table: task.table, id: task.id },
                Subject::Lease(id) => {
                    let (source, id) = super::names::lease(view, *id).unzip();
                    SubjectShape::Lease { source, id }
                }
                Subject::Item(item) => {
                    SubjectShape::Item { table: item.table, id: item.id, id_text: exact(item.id) }
                }
                Subject::Job(id) => {
                    let (adapter, schema, id) = super::adapters::name(view, *id).unwrap_or_default();
                    SubjectShape::Job { adapter, schema, id }
                }
                Subject::JobQueue(id) => {
                    let (adapter, schema, queue) = super::adapters::queue(view, *id).unwrap_or_default();
                    SubjectShape::JobQueue { adapter, schema, queue }
                }
                Subject::JobLease(id) => {
                    let (adapter, schema, id) = super::adapters::lease_of(view, *id).unwrap_or_default();
                    SubjectShape::JobLease { adapter, schema, id }
                }
                Subject::Queue => SubjectShape::Queue,
                Subject::Limit(id) => {
                    let name =
                        view.snapshot.as_deref().and_then(|snapshot| super::names::limit(snapshot, *id));
                    let (table, key) = name.unzip();
                    SubjectShape::RateLimit { table, key }
                }
                Subject::Generator(id) => SubjectShape::IdGenerator { table: id.table, worker_id: id.worker },
                Subject::Server => SubjectShape::Server,
                Subject::Section(name) => SubjectShape::Section { name },
            },
        }
    }
}

/// A number as text. Readers that keep numbers as doubles, such as jq and JavaScript, change those above 2^53.
pub(super) fn exact(number: i64) -> String {
    number.to_string()
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Key {
    Bigint { value: i64, text: String },
    Pair { classid: i32, objid: i32 },
}

impl From<lock_key::LockKey> for Key {
    fn from(key: lock_key::LockKey) -> Self {
        match key {
            lock_key::LockKey::Bigint(value) => Self::Bigint { value, text: exact(value) },
            lock_key::LockKey::Pair(classid, objid) => Self::Pair { classid, objid },
        }
    }
}
