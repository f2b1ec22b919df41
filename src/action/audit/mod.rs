//! The record of what was done to a server: `locktop/audit.jsonl` in the user's state directory.
//!
//! It only grows: each line is one object, and what is there is never changed. A file of 5 MB becomes `audit.jsonl.1`, that one
//! `audit.jsonl.2`, up to five. Directory and files are the user's alone (0700, 0600). Several processes may write at once.
//!
//! # Lines
//!
//! Before anything is asked of a server there is a line `"event": "asked"` on the disk, and afterwards one `"event": "result"`
//! with the same `id`. Times are RFC 3339, by the clock of this machine where it is `at`, by the server's in a target.
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
//! - `id`: a number of the process's own, which is random, and a counter.
//! - `verb`: [`Verb::as_str`].
//! - `target.kind`: `session`, `lease`, `redis_lease`, `task`, `item`, `execution`; what identified it follows. A part that need
//!   not be as it was seen is left out.
//! - `fate`: `done`, `still_there`, `changed`, `refused`, `forbidden`, `outcome_unknown`, `not_tried`.
//!
//! A process that goes down between the two lines leaves the first alone. The next one that opens the record sees that it is gone
//! and writes a result of `outcome_unknown` for it, with a `who` of its own ([`Audit::unfinished`]).
//!
//! What was not even asked, since something came before, has a result alone.
//!
//! No line has a secret, a query of anybody's or a character that commands a terminal: those are `\u` escapes.

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

use serde::Serialize;

pub use audit_log::AuditLog;
pub use error::AuditError;
pub use line::ServerName;
use line::{AskedLine, FORMAT, ResultLine, TargetLine, Who, short};
pub use place::directory;
use presence::Presence;
use store::{LIMIT, Store};

use crate::action::Actor;
use crate::clock;
use crate::model::Timestamp;
use crate::model::plan::{ActionCommand, Target, TargetResult, Verb};
use crate::wire;

/// The record in files, open. Clones are the same.
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

/// Something that is on record as asked, and has no result yet.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "its result must be recorded too"]
pub struct Entry {
    id: String,
    verb: &'static str,
    name: String,
}

impl Entry {
    /// The id that the lines of this action have in the record.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Something that a process asked for and did not live to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// When it was put on record as asked.
    pub at: Timestamp,
    /// What was to be done, as in [`crate::model::plan::Verb::as_str`].
    pub verb: String,
    /// Whom or what it was to be done to, as the question named it.
    pub name: String,
}

impl Audit {
    /// Opens the record in a directory ([`directory`]), which is made where there is none; files come with the first line.
    ///
    /// # Errors
    /// When the directory cannot be made, belongs to another user, or others can write to it.
    pub fn open(directory: &Path, actor: &Actor) -> Result<Self, AuditError> {
        Self::open_with(directory, actor, LIMIT)
    }

    fn open_with(directory: &Path, actor: &Actor, limit: u64) -> Result<Self, AuditError> {
        let store = Store::open(directory, limit)?;
        let presence = Presence::new(&store)?;
        let inner = Inner { store, presence, who: Who::of(actor), count: AtomicU64::new(0) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The file that the newest lines are in.
    pub fn path(&self) -> PathBuf {
        self.inner.store.path(store::FILE)
    }

    /// Records what is about to be asked of a server, and in short how. When this returns it is on the disk.
    ///
    /// # Errors
    /// When it cannot be written: then nothing may be done.
    pub async fn begin(
        &self,
        server: &ServerName,
        command: &ActionCommand,
        target: &Target,
        statement: &str,
    ) -> Result<Entry, AuditError> {
        let inner = &self.inner;
        let entry = self.entry(command.verb, target);
        let line = AskedLine {
            format: FORMAT,
            event: "asked",
            id: &entry.id,
            at: clock::wall(),
            deed: command.number,
            verb: entry.verb,
            name: entry.name.clone(),
            target: TargetLine::of(target, command),
            sql: short(statement),
            who: &inner.who,
            server,
        };
        self.add(json(&line), Some(entry.id.clone()), None).await?;
        Ok(entry)
    }

    /// Records what came of it.
    ///
    /// # Errors
    /// When it cannot be written; the line that it was asked stays, and says at the next start that its outcome is not known.
    pub async fn end(&self, entry: Entry, result: &TargetResult) -> Result<(), AuditError> {
        let line = ResultLine {
            format: FORMAT,
            event: "result",
            id: &entry.id,
            at: clock::wall(),
            verb: entry.verb,
            name: entry.name.clone(),
            fate: result.outcome.as_str(),
            detail: short(&result.detail),
            who: None,
        };
        let line = json(&line);
        self.add(line, None, Some(entry.id)).await
    }

    /// Records what came of something that was not asked.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn left(&self, verb: Verb, target: &Target, result: &TargetResult) -> Result<(), AuditError> {
        self.end(self.entry(verb, target), result).await
    }

    fn entry(&self, verb: Verb, target: &Target) -> Entry {
        let number = self.inner.count.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", self.inner.presence.run());
        Entry { id, verb: verb.as_str(), name: short(&target.name) }
    }

    /// Finds what processes that are gone asked for and did not live to see, and records that its outcome is not known. Each is found
    /// once.
    ///
    /// # Errors
    /// When the record cannot be read or written.
    pub async fn unfinished(&self) -> Result<Vec<Unfinished>, AuditError> {
        let inner = Arc::clone(&self.inner);
        blocking(&self.path(), move || presence::settle(&inner.store, &inner.presence, &inner.who)).await
    }

    /// Writes and waits for the disk, which may take its time: not where others wait for this thread.
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
            // What is not on record was not asked either.
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

/// A line. The shapes have no map with keys that are no text, and no number that is none of JSON's.
fn json(line: &impl Serialize) -> String {
    wire::json::line(line).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}
