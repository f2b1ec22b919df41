use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::action::Actor;
use crate::clock;
use crate::model::Timestamp;
use crate::model::plan::TargetKind;
use pg_connect::conninfo::ConnInfo;

/// Incremented when a key changes its meaning. New keys do not change it.
const FORMAT: u32 = 1;
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

/// A line of the record. What is not read again is not parsed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(skip_deserializing)]
    pub(super) format: u32,
    pub(super) event: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) at: Timestamp,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) deed: Option<u64>,
    #[serde(default)]
    pub(super) verb: Cow<'a, str>,
    #[serde(default)]
    pub(super) name: Cow<'a, str>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<&'a TargetKind>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) sql: Option<String>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) fate: Option<&'static str>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    /// The process that requested the action, or that recorded the result of another process.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) who: Option<&'a Who>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<&'a ServerName>,
}

impl<'a> Line<'a> {
    pub(super) fn new(event: &'static str, id: &'a str, verb: &'a str, name: &'a str) -> Self {
        let (id, verb, name) = (id.into(), verb.into(), name.into());
        Self {
            format: FORMAT,
            event: event.into(),
            id,
            at: clock::wall(),
            deed: None,
            verb,
            name,
            target: None,
            sql: None,
            fate: None,
            detail: None,
            who: None,
            server: None,
        }
    }
}

pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
