use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::action::Actor;
use crate::model::Timestamp;
use crate::model::plan::{
    ActionCommand, ItemTarget, LeaseTarget, PublishedTarget, Running, SessionTarget, Target, TargetKind,
    TaskTarget,
};
use crate::model::redis_lease::{LockValue, RedisLease, shown};
use pg_connect::conninfo::ConnInfo;

/// Incremented when a key changes its meaning. New keys do not change it.
pub(super) const FORMAT: u32 = 1;
/// Number of characters kept of a statement or of a text from the server.
const LONGEST: usize = 4_000;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Who {
    os_user: Option<String>,
    role: String,
    tool: String,
    version: &'static str,
    pub(super) pid: u32,
    pub(super) host: Option<String>,
}

impl Who {
    pub(super) fn of(actor: &Actor) -> Self {
        Self {
            os_user: actor.os_user.clone(),
            role: actor.role.clone(),
            tool: actor.tool.clone(),
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            host: whoami::hostname().ok(),
        }
    }
}

/// The server that the action was sent to, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerName {
    /// `host:port` or the path of the socket; several are separated by commas if any one of them may answer.
    pub address: String,
    pub database: String,
    /// Identifies a cluster and its standbys, from `pg_control_system()`. `None` if unknown.
    pub system_identifier: Option<String>,
}

impl ServerName {
    pub fn of(info: &ConnInfo) -> Self {
        Self { address: info.places(), database: info.dbname().to_owned(), system_identifier: None }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct AskedLine<'a> {
    pub(super) format: u32,
    pub(super) event: &'static str,
    pub(super) id: &'a str,
    pub(super) at: Timestamp,
    pub(super) deed: u64,
    pub(super) verb: &'static str,
    pub(super) name: String,
    pub(super) target: TargetLine<'a>,
    pub(super) sql: String,
    pub(super) who: &'a Who,
    pub(super) server: &'a ServerName,
}

#[derive(Debug, Serialize)]
pub(super) struct ResultLine<'a> {
    pub(super) format: u32,
    pub(super) event: &'static str,
    pub(super) id: &'a str,
    pub(super) at: Timestamp,
    pub(super) verb: &'a str,
    pub(super) name: String,
    pub(super) fate: &'static str,
    pub(super) detail: String,
    /// The process that recorded the result, if it is not the process that requested the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) who: Option<&'a Who>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Head {
    pub(super) event: String,
    pub(super) id: String,
    pub(super) at: Timestamp,
    #[serde(default)]
    pub(super) verb: String,
    #[serde(default)]
    pub(super) name: String,
}

/// The identity of a target as it was seen. Parts that need not match are omitted.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum TargetLine<'a> {
    Session(&'a SessionTarget),
    Lease(&'a LeaseTarget),
    RedisLease {
        key: String,
        /// SHA-256 of the value. The value itself is a secret: any client that knows it can release the lock.
        value_sha256: Option<String>,
        votes: u32,
        servers: u32,
    },
    Task(&'a TaskTarget),
    Item(&'a ItemTarget),
    Published(&'a PublishedTarget),
    /// A job or lease of another system.
    Adapter {
        adapter: &'a str,
        source: &'a str,
        oid: u32,
        id: &'a str,
        worker: Option<&'a str>,
        attempt: Option<i64>,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    },
    Execution {
        id: i64,
        schema: Option<&'a str>,
        #[serde(flatten)]
        seen: Option<Execution<'a>>,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct Execution<'a> {
    task_id: i64,
    task_name: &'a str,
    worker: &'a str,
    started_at: Option<Timestamp>,
    backend_pid: Option<i32>,
    backend_start: Option<Timestamp>,
    lock_id: Option<i64>,
}

impl<'a> TargetLine<'a> {
    pub(super) fn of(target: &'a Target, command: &'a ActionCommand) -> Self {
        match &target.what {
            TargetKind::Session(session) => Self::Session(session),
            TargetKind::Lease(lease) => Self::Lease(lease),
            TargetKind::RedisLease(lease) => Self::redis(lease),
            TargetKind::Task(task) => Self::Task(task),
            TargetKind::Item(item) => Self::Item(item),
            TargetKind::Published(one) => Self::Published(one),
            TargetKind::Adapter(one) => Self::Adapter {
                adapter: &one.adapter.name,
                source: &one.source,
                oid: one.oid,
                id: &one.values.id,
                worker: one.values.who.as_deref(),
                attempt: one.values.attempt,
                since: one.values.since,
                until: one.values.until,
            },
            TargetKind::Execution { id } => {
                let plan = command.recovery.as_deref();
                Self::Execution {
                    id: *id,
                    schema: plan.map(|plan| plan.schema.as_str()),
                    seen: plan.and_then(|plan| plan.row(*id)).map(|row| Execution::of(&row.seen)),
                }
            }
        }
    }

    fn redis(lease: &RedisLease) -> Self {
        let value = match &lease.holder {
            LockValue::Text { bytes, .. } => Some(bytes),
            LockValue::Redisson { holders, .. } => holders.first().map(|(holder, _)| holder),
            LockValue::Other(_) => None,
        };
        Self::RedisLease {
            key: shown(&lease.key).to_string(),
            value_sha256: value.map(|bytes| hex(&Sha256::digest(bytes))),
            votes: lease.votes,
            servers: lease.servers,
        }
    }
}

impl<'a> Execution<'a> {
    fn of(seen: &'a Running) -> Self {
        Self {
            task_id: seen.task_id,
            task_name: &seen.task_name,
            worker: &seen.worker_id,
            started_at: seen.started_at,
            backend_pid: seen.backend_pid,
            backend_start: seen.backend_start,
            lock_id: seen.lock_id,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
