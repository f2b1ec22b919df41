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
//! - `verb`: [`Verb::as_str`].
//! - `target.kind`: `session`, `lease`, `redis_lease`, `task`, `item`, `execution`; its identity follows. Parts that
//!   need not match are omitted.
//! - `fate`: `done`, `still_there`, `changed`, `refused`, `forbidden`, `outcome_unknown`, `not_tried`.
//!
//! A process that ends between the two lines leaves only the first. The next process that opens the record detects this
//! and writes a result of `outcome_unknown` with its own `who` ([`Audit::unfinished`]).
//!
//! An action that was never requested has only a result.
//!
//! Lines contain no secret, no query text and no terminal control character: control characters are `\u` escapes.

mod audit_log;
mod error;
mod line;
mod place;
mod presence;
mod store;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use audit_log::AuditLog;
pub use error::AuditError;
pub use line::ServerName;
use line::{Line, Who, short};
pub use place::directory;
use presence::Presence;
use store::{LIMIT, Store};

use crate::action::Actor;
use crate::model::Timestamp;
use crate::model::plan::{ActionCommand, Target, TargetResult, Verb};
use crate::wire;

/// The open record. Clones share it.
#[derive(Debug, Clone)]
pub struct Audit {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    presence: Presence,
    who: Who,
    count: AtomicU64,
}

/// An action that is recorded as requested and has no result yet.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "its result must be recorded too"]
pub struct Entry {
    id: String,
    verb: &'static str,
    name: String,
}

impl Entry {
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// An action that was requested by a process that ended before the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    pub at: Timestamp,
    /// The action, as in [`crate::model::plan::Verb::as_str`].
    pub verb: String,
    pub name: String,
}

impl Audit {
    /// Opens the record in a directory ([`directory`]), which is created if missing; files are created with the first line.
    ///
    /// # Errors
    /// If the directory cannot be created, belongs to another user, or is writable by other users.
    pub fn open(directory: &Path, actor: &Actor) -> Result<Self, AuditError> {
        Self::open_with(directory, actor, LIMIT)
    }

    fn open_with(directory: &Path, actor: &Actor, limit: u64) -> Result<Self, AuditError> {
        let store = Store::open(directory, limit)?;
        let presence = Presence::new(&store)?;
        let inner = Inner { store, presence, who: Who::of(actor), count: AtomicU64::new(0) };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub fn path(&self) -> PathBuf {
        self.inner.store.path(store::FILE)
    }

    /// Records an action before it is sent, with a short form of its statement. The line is on disk when this returns.
    ///
    /// # Errors
    /// If the line cannot be written: then the action must not be executed.
    pub async fn begin(
        &self,
        server: &ServerName,
        command: &ActionCommand,
        target: &Target,
        statement: &str,
    ) -> Result<Entry, AuditError> {
        let inner = &self.inner;
        let entry = self.entry(command.verb, target);
        let line = Line {
            deed: Some(command.number),
            target: Some(&target.what),
            sql: Some(short(statement)),
            who: Some(&inner.who),
            server: Some(server),
            ..Line::new("asked", &entry.id, entry.verb, &entry.name)
        };
        self.add(json(&line), Some(entry.id.clone()), None).await?;
        Ok(entry)
    }

    /// Records the result.
    ///
    /// # Errors
    /// If it cannot be written. The request stays on record, and the next start reports its outcome as unknown.
    pub async fn end(&self, entry: Entry, result: &TargetResult) -> Result<(), AuditError> {
        let line = json(&Line {
            fate: Some(result.outcome.as_str()),
            detail: Some(short(&result.detail)),
            ..Line::new("result", &entry.id, entry.verb, &entry.name)
        });
        self.add(line, None, Some(entry.id)).await
    }

    /// Records the result of an action that was not requested.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn left(&self, verb: Verb, target: &Target, result: &TargetResult) -> Result<(), AuditError> {
        self.end(self.entry(verb, target), result).await
    }

    fn entry(&self, verb: Verb, target: &Target) -> Entry {
        let number = self.inner.count.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", self.inner.presence.run());
        Entry { id, verb: verb.as_str(), name: short(&target.name) }
    }

    /// Finds actions that were requested by processes that ended before the result, and records their outcome as unknown.
    /// Each is found once.
    ///
    /// # Errors
    /// If the record cannot be read or written.
    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, AuditError> {
        let inner = Arc::clone(&self.inner);
        blocking(&self.path(), move || presence::settle(&inner.store, &inner.presence, &inner.who)).await
    }

    /// Writes on a blocking thread, because waiting for the disk may take long.
    async fn add(
        &self,
        line: String,
        begins: Option<String>,
        ends: Option<String>,
    ) -> Result<(), AuditError> {
        let inner = Arc::clone(&self.inner);
        blocking(&self.path(), move || {
            let turn = inner.store.turn()?;
            if let Some(id) = &begins {
                inner.presence.begin(&inner.store, id.clone())?;
            }
            let added = turn.add(&line);
            // An action that is not on record was not requested.
            if let Some(id) = if added.is_ok() { ends } else { begins } {
                inner.presence.end(&id);
            }
            added
        })
        .await
    }
}

impl Drop for Inner {
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
