//! The targets of actions. Everything in here is what was *seen*: the statement that acts compares it with the current
//! state on the server. For a session, `signal::identity` decides which values must be unchanged. The record stores
//! targets under these names.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::json;

use super::row_target::{PublishedTarget, RowTarget};
use super::{Outcome, Planned, RecoveryPlan, TargetResult};
use crate::model::adapter::{ActionKind, ActionValues, AdapterAction, Installation};
use crate::model::backend::Backend;
use crate::model::finding::Subject;
use crate::model::lock::{LockMode, LockTag};
use crate::model::redis_lease::{self, RedisLease};
use crate::model::table_rows::{Item, Lease, Schedule};
use crate::model::{Text, Timestamp};
use crate::text::one_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: cancels the running query.
    Cancel,
    /// SIGTERM: terminates the session.
    Terminate,
}

impl Signal {
    pub const fn function(self) -> &'static str {
        match self {
            Self::Cancel => "pg_cancel_backend",
            Self::Terminate => "pg_terminate_backend",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionTarget {
    pub pid: i32,
    /// Start of the session: without it there is no identity, and no action is possible.
    pub backend_start: Timestamp,
    /// Its transaction. In a pool, the same session may serve another client in its next transaction.
    #[serde(skip_serializing_if = "ExpectedTime::is_any")]
    pub xact_start: ExpectedTime,
    /// The current or last query; to be cancelled, the query must also be active.
    #[serde(skip_serializing_if = "ExpectedTime::is_any")]
    pub query_start: ExpectedTime,
    #[serde(skip_serializing_if = "ExpectedTime::is_any")]
    pub state_change: ExpectedTime,
    pub client: Client,
    #[serde(serialize_with = "serialize_held", skip_serializing_if = "Option::is_none")]
    pub holds: Option<(LockTag, LockMode)>,
    /// The lock must be a session-level lock, whatever client the session serves.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
    /// A session must still wait for it, as a holder or as one ahead in a queue.
    pub blocks: bool,
}

impl SessionTarget {
    /// A session that is identified by its lock, whatever it runs.
    pub(super) fn by_lock(backend: &Backend, backend_start: Timestamp, held: (LockTag, LockMode)) -> Self {
        Self {
            pid: backend.pid,
            backend_start,
            client: Client::of(backend),
            xact_start: ExpectedTime::Any,
            query_start: ExpectedTime::Any,
            state_change: ExpectedTime::Any,
            holds: Some(held),
            keeps: false,
            blocks: false,
        }
    }
}

/// The client of a session. A pooler may pass the names of its clients to the server, but not always: a different name
/// means a different client, and the same name proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Client {
    /// `application_name`; `None` if the client gave none.
    pub application: Option<Text>,
    pub usesysid: Option<u32>,
    /// Client address; `[local]` for a Unix socket.
    pub address: Option<Text>,
    /// `client_port`: -1 for a Unix socket; `None` if there is no client or the role may not see it.
    pub port: Option<i32>,
}

impl Client {
    pub fn of(backend: &Backend) -> Self {
        Self {
            application: backend.application.clone(),
            usesysid: backend.usesysid,
            address: backend.client.clone(),
            port: backend.client_port,
        }
    }

    /// The name if it can be compared: bytes that could not be read appear in it as U+FFFD, whatever they were.
    pub fn comparable_application(&self) -> Option<Option<&str>> {
        let name = self.application.as_deref();
        let is_read = name.is_none_or(|name| !name.contains(char::REPLACEMENT_CHARACTER));
        is_read.then_some(name)
    }

    /// Whether no value distinguishes the two.
    pub fn may_be(&self, other: &Self) -> bool {
        let (was, is) = (self.comparable_application(), other.comparable_application());
        (was.is_none() || is.is_none() || was == is)
            && (self.usesysid, &self.address, self.port) == (other.usesysid, &other.address, other.port)
    }
}

/// A time that must be the same, or may be any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ExpectedTime {
    Same(Option<Timestamp>),
    Any,
}

impl ExpectedTime {
    fn is_any(&self) -> bool {
        *self == Self::Any
    }

    pub fn differs(self, now: Option<Timestamp>) -> bool {
        !self.is_any() && self.time() != now
    }

    pub fn time(self) -> Option<Timestamp> {
        if let Self::Same(at) = self { at } else { None }
    }
}

#[expect(clippy::ref_option, reason = "serde hands a field over so")]
fn serialize_held<S: Serializer>(
    held: &Option<(LockTag, LockMode)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Some((tag, mode)) = held else { return serializer.serialize_none() };
    serializer.collect_map([
        ("locktype", json!(tag.locktype().as_str())),
        ("database", json!(tag.database())),
        ("relation", json!(tag.relation())),
        // The key as written: `815` or `(1, 100)`.
        ("key", json!(tag.advisory_key().map(|key| key.to_string()))),
        ("mode", json!(mode.as_str())),
    ])
}

/// A job or lease of another system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdapterTarget {
    #[serde(rename = "adapter", serialize_with = "name_of")]
    pub installation: Arc<Installation>,
    pub source: Text,
    pub oid: u32,
    #[serde(skip)]
    pub kind: ActionKind,
    /// Index of the alternative of its adapter, from 1.
    #[serde(skip)]
    pub number: usize,
    #[serde(flatten)]
    pub values: ActionValues,
}

fn name_of<S: Serializer>(installation: &Installation, serializer: S) -> Result<S::Ok, S::Error> {
    installation.adapter.name.serialize(serializer)
}

impl AdapterTarget {
    /// `None` if its adapter has no such alternative.
    pub fn action(&self) -> Option<&AdapterAction> {
        self.installation.adapter.action(self.kind, self.number)
    }

    /// How its system handles the job or lease afterwards.
    pub fn then(&self) -> &str {
        self.action().map_or("", |action| &action.then)
    }

    /// The tables that the statement writes: `public.good_jobs, public.good_job_processes`.
    pub fn tables(&self) -> String {
        let keys = self.action().into_iter().flat_map(|action| &action.writes);
        let names = keys.filter_map(|key| self.installation.tables.get(key));
        names.map(|name| &**name).collect::<Vec<_>>().join(", ")
    }
}

/// An execution of locktop's own tables: a row of the plan that the server made.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionTarget {
    pub plan: Arc<RecoveryPlan>,
    pub row: Planned,
}

impl ExecutionTarget {
    fn is_same(&self, other: &Self) -> bool {
        // The server compares the same values.
        let identity = |row: &Planned| {
            let seen = &row.seen;
            let worker = (seen.worker_id.clone(), seen.started_at, seen.backend_pid, seen.backend_start);
            let also: Vec<_> = row.also_ended.iter().map(|also| also.execution_id).collect();
            (seen.execution_id, row.step, worker, also)
        };
        identity(&self.row) == identity(&other.row)
    }
}

impl Serialize for ExecutionTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let seen = &self.row.seen;
        serializer.collect_map([
            ("id", json!(seen.execution_id)),
            ("schema", json!(self.plan.schema)),
            ("task_id", json!(seen.task_id)),
            ("task_name", json!(seen.task_name)),
            ("worker", json!(seen.worker_id)),
            ("started_at", json!(seen.started_at)),
            ("backend_pid", json!(seen.backend_pid)),
            ("backend_start", json!(seen.backend_start)),
            ("lock_id", json!(seen.lock_id)),
        ])
    }
}

/// The record stores it with its `kind`. Parts that need not match are omitted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TargetKind {
    Session(SessionTarget),
    Lease(RowTarget<Lease>),
    RedisLease(#[serde(serialize_with = "redis_lease::recorded")] Arc<RedisLease>),
    Task(RowTarget<Schedule>),
    Item(RowTarget<Item>),
    Published(PublishedTarget),
    Adapter(AdapterTarget),
    Execution(ExecutionTarget),
}

impl TargetKind {
    /// Whether both have the same identity: a lease with a token stays the same when it is renewed.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Lease(one), Self::Lease(other)) => {
                one.has_same_owner(other) && (one.token.is_some() || one == other)
            }
            (Self::Execution(one), Self::Execution(other)) => one.is_same(other),
            _ => self == other,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub what: TargetKind,
    /// Display name in one sanitized line: `4312 app@web-3`.
    pub name: String,
    pub subject: Subject,
}

impl Target {
    pub fn result(&self, outcome: Outcome, detail: &str) -> TargetResult {
        let detail = one_line(detail).into_owned();
        TargetResult { name: self.name.clone(), subject: self.subject, outcome, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(application: Option<&str>, usesysid: u32, address: &str, port: i32) -> Client {
        Client {
            application: application.map(Into::into),
            usesysid: Some(usesysid),
            address: Some(address.into()),
            port: Some(port),
        }
    }

    #[test]
    fn each_field_distinguishes_clients() {
        let seen = client(Some("web"), 10, "10.0.0.1", 5000);
        for (other, may_be) in [
            (seen.clone(), true),
            (client(Some("web-2"), 10, "10.0.0.1", 5000), false),
            (client(None, 10, "10.0.0.1", 5000), false),
            (client(Some("web"), 11, "10.0.0.1", 5000), false),
            (client(Some("web"), 10, "[local]", 5000), false),
            (client(Some("web"), 10, "10.0.0.1", 5001), false),
            (Client::default(), false),
        ] {
            assert_eq!((seen.may_be(&other), other.may_be(&seen)), (may_be, may_be), "{other:?}");
        }
    }

    #[test]
    fn a_name_that_could_not_be_read_is_compared_with_nothing() {
        let unread = client(Some("caf\u{fffd}"), 10, "10.0.0.1", 5000);
        assert_eq!(unread.comparable_application(), None);
        assert!(unread.may_be(&client(Some("café"), 10, "10.0.0.1", 5000)));
        assert!(client(None, 10, "10.0.0.1", 5000).may_be(&unread));
        assert!(!unread.may_be(&client(Some("caf\u{fffd}"), 10, "10.0.0.1", 5001)), "the rest is");
    }
}
