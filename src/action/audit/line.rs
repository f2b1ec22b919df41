use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use locktop_base::file::of_user;
use locktop_base::file::{FileError, Flaw};
use pg_connect::conninfo::ConnInfo;
use serde::{Deserialize, Serialize};

use crate::action::Actor;
use crate::clock;
use crate::model::Timestamp;
use crate::model::plan::TargetKind;

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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
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
#[derive(Debug, Default, Serialize, Deserialize)]
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
        Self { format: FORMAT, event: event.into(), id, at: clock::wall(), verb, name, ..Self::default() }
    }
}

pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An action that gets this error is not executed.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("no directory for the record of actions: set XDG_STATE_HOME or HOME")]
    Nowhere,
    /// Other users could change the record, or it would be written to a different place.
    #[error("the record of actions is not written to {}: {}; {}, or set XDG_STATE_HOME to your own directory", .path.display(), .flaw.text(), .flaw.remedy(.path))]
    Unsafe { path: PathBuf, flaw: Flaw },
    /// Another process holds the lock on this file, and did not release it in time.
    #[error("the record of actions {} is locked by another process, which may be stopped", .0.display())]
    Busy(PathBuf),
    #[error("the record of actions {} cannot be written: {source}; {}", .path.display(), remedy(.source))]
    System { path: PathBuf, source: io::Error },
}

impl AuditError {
    pub(super) fn of<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::System { path, source: source.into() }
    }
}

impl From<FileError> for AuditError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Unsafe { path, flaw } => Self::Unsafe { path, flaw },
            FileError::System { path, source } => Self::System { path, source },
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there, or set XDG_STATE_HOME to a directory with more space"
        }
        _ => "make it writable, or set XDG_STATE_HOME to a directory that is",
    }
}

/// `locktop` in the user's state directory: `XDG_STATE_HOME` or `~/.local/state`. `None` if there is no home directory.
pub fn directory(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    Some(of_user("XDG_STATE_HOME", ".local/state", env)?.join("locktop"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_none() {
        let place = |value: &str| directory(&|name| (name == "XDG_STATE_HOME").then(|| value.to_owned()));
        assert_eq!(place("/var/state"), Some("/var/state/locktop".into()));
        // The result for a relative path depends on the environment of the test run.
        assert!(place("state").is_none_or(|path| path.is_absolute()));
    }
}
