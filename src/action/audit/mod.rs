//! The record of actions on a server: `locktop/audit.jsonl` in the user's state directory.
//!
//! The record is append-only: each line is one JSON object. A file of 5 MB becomes `audit.jsonl.1`, that one
//! `audit.jsonl.2`, up to five. Only the user can access the directory and the files (0700, 0600). Several processes
//! may write at the same time.
//!
//! # Lines
//!
//! A line `"event": "asked"` is on disk before a request is sent to a server, and a line `"event": "result"` with the
//! same `id` follows. Times are RFC 3339; `at` is the clock of this machine, times in a target are the server's.
//!
//! ```json
//! {"format":1,"event":"asked","id":"6f0c2a9be1d34f58-1","at":"2026-11-21T03:00:00.123Z","deed":7,"verb":"terminate",
//!  "name":"4312 app@web-3","target":{"kind":"session","pid":4312,"backend_start":"…","xact_start":"…","blocks":true},
//!  "sql":"pg_terminate_backend(4312) if …",
//!  "who":{"os_user":"ann","role":"ops","tool":"locktop","version":"0.1.0","pid":815,"host":"laptop"},
//!  "server":{"address":"db:5432","database":"app","system_identifier":"7300000000000000000"}}
//! {"format":1,"event":"result","id":"6f0c2a9be1d34f58-1","at":"2026-11-21T03:00:00.345Z","verb":"terminate",
//!  "name":"4312 app@web-3","fate":"done","detail":"ended after 0.1s"}
//! ```
//!
//! - `id`: a random number of the process, and a counter.
//! - `verb`: [`Verb::as_str`][crate::model::plan::Verb::as_str].
//! - `target.kind`: `session`, `lease`, `redis_lease`, `task`, `item`, `execution`; its identity follows. Parts that
//!   need not match are omitted.
//! - `fate`: `done`, `still_there`, `changed`, `refused`, `forbidden`, `outcome_unknown`, `not_tried`.
//!
//! A process that ends between the two lines leaves only the first. The next process that opens the record detects this
//! and writes a result of `outcome_unknown` with its own `who` ([`AuditLog::unfinished`]).
//!
//! An action that was never requested has only a result.
//!
//! Lines contain no secret, no query text and no terminal control character: control characters are `\u` escapes.

mod line;
mod store;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Client;

use super::{Actor, Asked, Record};
use crate::model::Timestamp;
use crate::model::event::{Kind, Told};
use crate::model::finding::Severity;
use crate::model::plan::{Outcome, TargetResult};
use crate::pg::trust::TrustedOwners;
use crate::schema::Schema;
use crate::wire;
pub use line::{AuditError, ServerName, directory};
use line::{Line, Who, short};
use store::{LIMIT, Presence, Store};
use table::system_identifier;

/// The open file.
#[derive(Debug)]
struct Audit {
    store: Store,
    presence: Presence,
    who: Who,
    count: AtomicU64,
}

/// An action that is recorded as requested and has no result yet.
#[derive(Debug)]
#[must_use = "its result must be recorded too"]
pub struct Entry {
    id: String,
    verb: &'static str,
    name: String,
    /// The schemas whose audit tables have the request.
    schemas: Vec<Schema>,
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
    fn open(directory: &Path, actor: &Actor, limit: u64) -> Result<Arc<Self>, AuditError> {
        let store = Store::open(directory, limit)?;
        let presence = Presence::new(&store)?;
        Ok(Arc::new(Self { store, presence, who: Who::of(actor), count: AtomicU64::new(0) }))
    }

    fn path(&self) -> PathBuf {
        self.store.path(store::FILE)
    }

    /// Records an action before it is sent. The line is on disk when this returns; otherwise the action must not be executed.
    async fn begin(self: &Arc<Self>, server: &ServerName, asked: &Asked<'_>) -> Result<Entry, AuditError> {
        let entry = self.entry(asked);
        let line = Line {
            deed: Some(asked.number),
            target: Some(&asked.target.what),
            sql: Some(short(asked.statement)),
            who: Some(&self.who),
            server: Some(server),
            ..Line::new("asked", &entry.id, entry.verb, &entry.name)
        };
        self.add(json(&line), Some(entry.id.clone()), None).await?;
        Ok(entry)
    }

    /// Records the result. If it cannot be written, the request stays on record, and the next start reports its outcome as
    /// unknown.
    async fn end(self: &Arc<Self>, entry: Entry, result: &TargetResult) -> Result<Vec<Schema>, AuditError> {
        let line = json(&Line {
            fate: Some(result.outcome.as_str()),
            detail: Some(short(&result.detail)),
            ..Line::new("result", &entry.id, entry.verb, &entry.name)
        });
        self.add(line, None, Some(entry.id)).await?;
        Ok(entry.schemas)
    }

    fn entry(&self, asked: &Asked<'_>) -> Entry {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", self.presence.run());
        Entry { id, verb: asked.verb.as_str(), name: short(&asked.target.name), schemas: Vec::new() }
    }

    /// Finds actions that were requested by processes that ended before the result, and records their outcome as unknown.
    /// Each is found once.
    async fn unfinished(self: &Arc<Self>) -> Result<Vec<Unfinished>, AuditError> {
        let audit = Arc::clone(self);
        blocking(&self.path(), move || store::settle(&audit.store, &audit.presence, &audit.who)).await
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
            let turn = audit.store.turn()?;
            if let Some(id) = &begins {
                audit.presence.begin(&audit.store, id.clone())?;
            }
            let added = turn.add(&line);
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
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(AuditError::of(path)(std::io::Error::other(error))),
    }
}

/// Cannot fail for these types: their maps have only text keys, and JSON can represent all their numbers.
fn json(line: &Line<'_>) -> String {
    wire::json::line(line).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}

/// The record: the file, the tables of locktop's schemas, and the events of the screens.
pub struct AuditLog {
    directory: Option<PathBuf>,
    actor: Actor,
    pub trusted_owners: TrustedOwners,
    /// Takes an event for each request and each result.
    pub tell: Option<Box<dyn Fn(Told) + Send + Sync>>,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    /// Opened on first use; a failed attempt is repeated on the next use.
    audit: Option<Arc<Audit>>,
    server: ServerName,
    /// The command for which the audit tables were looked up.
    command: Option<u64>,
    /// The schemas whose audit tables can be written.
    schemas: Vec<Schema>,
    notes: Vec<String>,
    /// All notes so far, so that each is reported only once.
    said: BTreeSet<String>,
}

impl AuditLog {
    /// Does not open anything yet. Without a directory ([`directory`]), no action can be requested.
    pub fn new(directory: Option<PathBuf>, actor: Actor, server: ServerName) -> Self {
        let state = Mutex::new(LogState { server, ..LogState::default() });
        Self { directory, actor, trusted_owners: TrustedOwners::default(), tell: None, state }
    }

    /// Actions that were requested by processes that ended before the result, each reported once.
    /// Does not create a record if there is none.
    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, AuditError> {
        if !self.directory.as_ref().is_some_and(|directory| directory.exists()) {
            return Ok(Vec::new());
        }
        let mut state = self.state.lock().await;
        self.open(&mut state)?.unfinished().await
    }

    /// Opens the record, so that an error is known before a person is asked to confirm an action.
    pub async fn ready(&self) -> Result<(), AuditError> {
        self.open(&mut self.state.lock().await).map(drop)
    }

    fn open(&self, state: &mut MutexGuard<'_, LogState>) -> Result<Arc<Audit>, AuditError> {
        if let Some(audit) = &state.audit {
            return Ok(Arc::clone(audit));
        }
        let directory = self.directory.as_ref().ok_or(AuditError::Nowhere)?;
        Ok(Arc::clone(state.audit.insert(Audit::open(directory, &self.actor, LIMIT)?)))
    }

    async fn begin(&self, client: Option<&Client>, asked: &Asked<'_>) -> Result<Entry, AuditError> {
        let mut state = self.state.lock().await;
        let audit = self.open(&mut state)?;
        if let Some(client) = client
            && state.command != Some(asked.number)
        {
            // Once per command: the connection may be a different one, and the tables may have changed.
            state.command = Some(asked.number);
            if state.server.system_identifier.is_none() {
                state.server.system_identifier = system_identifier(client).await;
            }
            let (schemas, notes) = table::find(client, &self.trusted_owners).await;
            state.schemas = schemas;
            state.note(notes);
        }
        let mut entry = audit.begin(&state.server, asked).await?;
        if let Some(client) = client {
            let row = ("asked", format!("{} {} (record {})", entry.verb, entry.name, entry.id));
            let (schemas, notes) = table::add(client, &self.actor, &state.schemas, asked.target, row).await;
            entry.schemas = schemas;
            state.note(notes);
        }
        Ok(entry)
    }

    async fn end(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        entry: Option<Entry>,
        result: &TargetResult,
    ) -> Result<(), AuditError> {
        let mut state = self.state.lock().await;
        let audit = self.open(&mut state)?;
        let entry = entry.unwrap_or_else(|| audit.entry(asked));
        let schemas = audit.end(entry, result).await?;
        if let Some(client) = client.filter(|client| !client.is_closed()) {
            let row = ("result", format!("{}: {}", result.outcome.as_str(), result.detail));
            let (_, notes) = table::add(client, &self.actor, &schemas, asked.target, row).await;
            state.note(notes);
        }
        Ok(())
    }

    fn tell(&self, kind: Kind, severity: Severity, text: String, asked: &Asked<'_>) {
        if let Some(tell) = &self.tell {
            tell(Told { kind, severity, text, subject: Some(asked.target.subject) });
        }
    }
}

impl LogState {
    fn note(&mut self, notes: Vec<String>) {
        for note in notes {
            if self.said.insert(note.clone()) {
                self.notes.push(note);
            }
        }
    }
}

fn logged(what: &str) -> impl Fn(AuditError) -> String {
    move |error| {
        tracing::error!("{what}: {error}");
        error.to_string()
    }
}

impl Record for AuditLog {
    type Entry = Entry;

    async fn asked(&self, client: Option<&Client>, asked: &Asked<'_>) -> Result<Entry, String> {
        let Asked { verb, target, statement, .. } = *asked;
        let verb = verb.as_str();
        tracing::info!("{verb} {} is requested: {statement}", target.name);
        let entry = self.begin(client, asked).await;
        let entry = entry.map_err(logged("not recorded, and therefore not done"))?;
        let text = format!("{} {} asked", verb.replace('_', " "), target.name);
        self.tell(Kind::ActionAsked, Severity::Info, text, asked);
        Ok(entry)
    }

    async fn told(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        entry: Option<Entry>,
        result: &TargetResult,
    ) -> Result<(), String> {
        let TargetResult { name, outcome, detail, .. } = result;
        let (verb, word) = (asked.verb, outcome.as_str());
        let (severity, text) = if *outcome == Outcome::Done {
            (Severity::Info, format!("{} {name}: {detail}", verb.done()))
        } else {
            let (verb, word) = (verb.as_str().replace('_', " "), word.replace('_', " "));
            (Severity::Warning, format!("{verb} {name} {word}: {detail}"))
        };
        self.tell(Kind::ActionResult, severity, text, asked);
        tracing::info!("{} {name}: {word}, {detail}", verb.as_str());
        self.end(client, asked, entry, result).await.map_err(logged("its result is not recorded"))
    }

    async fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().await.notes)
    }
}
