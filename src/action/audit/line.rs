//! The file: its lines, and when they are written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use locktop_base::file::{FileError, How, of_user};
use pg_connect::conninfo::ConnInfo;
use serde::{Deserialize, Serialize};

use super::store::{self, AuditError, AuditStore, ProcessPresence};
use crate::action::{ActionRequest, Actor};
use crate::clock;
use crate::model::Timestamp;
use crate::model::plan::{Outcome, TargetKind, TargetResult};
use crate::order::SortExt as _;
use crate::output;
use crate::schema::Schema;

/// Incremented when a key changes its meaning. New keys do not change it.
const FORMAT: u32 = 1;
/// Number of characters kept of a statement or of a text from the server.
const LONGEST: usize = 4_000;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Who {
    #[serde(flatten)]
    actor: Actor,
    version: &'static str,
    pub(super) pid: u32,
    pub(super) host: Option<String>,
}

impl Who {
    pub(super) fn of(actor: &Actor) -> Self {
        Self {
            actor: actor.clone(),
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
pub(super) struct AuditLine<'a> {
    #[serde(skip_deserializing)]
    pub(super) format: u32,
    pub(super) event: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) at: Timestamp,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<u64>,
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

impl<'a> AuditLine<'a> {
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

/// `locktop` in the user's state directory: `XDG_STATE_HOME` or `~/.local/state`. `None` if there is no home directory.
pub fn directory(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    Some(of_user("XDG_STATE_HOME", ".local/state", env)?.join("locktop"))
}

/// The open file.
#[derive(Debug)]
pub(super) struct Audit {
    pub(super) store: AuditStore,
    presence: ProcessPresence,
    who: Who,
    count: AtomicU64,
}

/// An action that is recorded as requested and has no result yet.
#[derive(Debug)]
#[must_use = "its result must be recorded too"]
pub struct UnfinishedEntry {
    pub(super) id: String,
    pub(super) verb: &'static str,
    pub(super) name: String,
    /// The schemas whose audit tables have the request.
    pub(super) schemas: Vec<Schema>,
}

/// An action that was requested by a process that ended before the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    pub at: Timestamp,
    /// The action, as in [`Verb::as_str`][crate::model::plan::Verb::as_str].
    pub verb: String,
    pub name: String,
}

impl Audit {
    /// Opens the record in a directory ([`directory`]), which is created if missing; files are created with the first line.
    pub(super) fn open(directory: &Path, actor: &Actor, limit: u64) -> Result<Arc<Self>, AuditError> {
        let store = AuditStore::open(directory, limit)?;
        let presence = ProcessPresence::new(&store)?;
        Ok(Arc::new(Self { store, presence, who: Who::of(actor), count: AtomicU64::new(0) }))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.store.path(store::FILE)
    }

    /// Records an action before it is sent. The line is on disk when this returns; otherwise the action must not be executed.
    pub(super) async fn begin(
        self: &Arc<Self>,
        server: &ServerName,
        asked: &ActionRequest<'_>,
    ) -> Result<UnfinishedEntry, AuditError> {
        let entry = self.entry(asked);
        let line = AuditLine {
            action: Some(asked.number),
            target: Some(&asked.target.what),
            sql: Some(short(asked.statement)),
            who: Some(&self.who),
            server: Some(server),
            ..AuditLine::new("asked", &entry.id, entry.verb, &entry.name)
        };
        self.add(json(&line), Some(entry.id.clone()), None).await?;
        Ok(entry)
    }

    /// Records the result. If it cannot be written, the request stays on record, and the next start reports its outcome as
    /// unknown.
    pub(super) async fn end(
        self: &Arc<Self>,
        entry: UnfinishedEntry,
        result: &TargetResult,
    ) -> Result<Vec<Schema>, AuditError> {
        let line = json(&AuditLine {
            fate: Some(result.outcome.as_str()),
            detail: Some(short(&result.detail)),
            ..AuditLine::new("result", &entry.id, entry.verb, &entry.name)
        });
        self.add(line, None, Some(entry.id)).await?;
        Ok(entry.schemas)
    }

    pub(super) fn entry(&self, asked: &ActionRequest<'_>) -> UnfinishedEntry {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", self.presence.run);
        UnfinishedEntry {
            id,
            verb: asked.verb.as_str(),
            name: short(&asked.target.name),
            schemas: Vec::new(),
        }
    }

    /// Finds actions that were requested by processes that ended before the result, and records their outcome as unknown.
    /// Each is found once.
    pub(super) async fn unfinished(self: &Arc<Self>) -> Result<Vec<Unfinished>, AuditError> {
        let audit = Arc::clone(self);
        blocking(&self.path(), move || settle(&audit.store, &audit.presence, &audit.who)).await
    }

    /// Writes on a blocking thread, because waiting for the disk may take long.
    async fn add(
        self: &Arc<Self>,
        line: String,
        begins: Option<String>,
        ends: Option<String>,
    ) -> Result<(), AuditError> {
        let audit = Arc::clone(self);
        blocking(&self.path(), move || {
            let slot = audit.store.write_slot()?;
            if let Some(id) = &begins {
                audit.presence.begin(&audit.store, id.clone())?;
            }
            let added = slot.add(&line);
            // An action that is not on record was not requested.
            if let Some(id) = if added.is_ok() { ends } else { begins } {
                audit.presence.end(&id);
            }
            added
        })
        .await
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.presence.leave(&self.store);
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, AuditError> + Send + 'static,
) -> Result<T, AuditError> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).map_err(FileError::of(path))?
}

/// Cannot fail for these types: their maps have only text keys, and JSON can represent all their numbers.
pub(super) fn json(line: &AuditLine<'_>) -> String {
    output::json::line(line).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}

/// Records a result for every open request of processes that have ended.
fn settle(store: &AuditStore, own: &ProcessPresence, who: &Who) -> Result<Vec<Unfinished>, AuditError> {
    let mut runs: Vec<String> = store.names()?;
    runs.retain(|name| name.strip_prefix(store::PREFIX).is_some_and(|run| run != own.run));
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    // Processes create and lock their file while they have the write slot, so no process is between the two steps now.
    let slot = store.write_slot()?;
    let mut gone = Vec::new();
    for name in runs {
        match store.try_lock(&name, How::Existing) {
            Ok(Some(lock)) => gone.push((name, lock)),
            Ok(None) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let open =
        open_of(&gone.iter().filter_map(|(name, _)| name.strip_prefix(store::PREFIX)).collect(), store)?;
    let mut unfinished = Vec::with_capacity(open.len());
    for head in open {
        slot.add(&unknown(&head, who))?;
        unfinished.push(Unfinished { at: head.at, verb: head.verb.into(), name: head.name.into() });
    }
    for (name, _lock) in &gone {
        store.remove(name)?;
    }
    Ok(unfinished)
}

fn open_of(runs: &BTreeSet<&str>, store: &AuditStore) -> Result<Vec<AuditLine<'static>>, AuditError> {
    let mut open: BTreeMap<String, AuditLine<'static>> = BTreeMap::new();
    for bytes in store.contents()? {
        // A line that cannot be parsed is not settled.
        let heads = bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<AuditLine<'static>>(line).ok());
        for head in heads {
            let run = head.id.split_once('-').map_or("", |(run, _)| run);
            match &*head.event {
                "asked" if runs.contains(run) => _ = open.insert(head.id.to_string(), head),
                "result" => _ = open.remove(&*head.id),
                _ => {}
            }
        }
    }
    let mut open: Vec<AuditLine<'static>> = open.into_values().collect();
    open.order_by_key(|head| head.at);
    Ok(open)
}

fn unknown(head: &AuditLine<'_>, who: &Who) -> String {
    json(&AuditLine {
        fate: Some(Outcome::Uncertain.as_str()),
        detail: Some("the process that requested it ended before the result was known".to_owned()),
        who: Some(who),
        ..AuditLine::new("result", &head.id, &head.verb, &head.name)
    })
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
