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
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use locktop_tasks::recovery::record_grants;
use locktop_tasks::sql::{fill, without_comments};
use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Client;

use super::message::{Access, moment, note, number, packed, send, text};
use super::{ActionRecord, ActionRequest, Actor};
use crate::model::event::{EventKind, ExternalEvent};
use crate::model::finding::Severity;
use crate::model::lock_key::LockKey;
use crate::model::plan::{Outcome, Target, TargetKind, TargetResult};
use crate::model::table_rows::Owner;
use crate::pg::trust::TrustedOwners;
use crate::schema::{Schema, SchemaName};
use crate::text::one_line;
use line::Audit;
pub use line::{ServerName, Unfinished, UnfinishedEntry, directory};
pub use store::AuditError;
use store::LIMIT;

/// The record: the file, the tables of locktop's schemas, and the events of the screens.
pub struct AuditLog {
    directory: Option<PathBuf>,
    actor: Actor,
    pub trusted_owners: TrustedOwners,
    /// Takes an event for each request and each result.
    pub send_event: Option<Box<dyn Fn(ExternalEvent) + Send + Sync>>,
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
    reported: BTreeSet<String>,
}

impl AuditLog {
    /// Does not open anything yet. Without a directory ([`directory`]), no action can be requested.
    pub fn new(directory: Option<PathBuf>, actor: Actor, server: ServerName) -> Self {
        let state = Mutex::new(LogState { server, ..LogState::default() });
        Self { directory, actor, trusted_owners: TrustedOwners::default(), send_event: None, state }
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

    async fn begin(
        &self,
        client: Option<&Client>,
        asked: &ActionRequest<'_>,
    ) -> Result<UnfinishedEntry, AuditError> {
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
            state.find_tables(client, &self.trusted_owners).await;
        }
        let mut entry = audit.begin(&state.server, asked).await?;
        if let Some(client) = client {
            let row = ("asked", format!("{} {} (record {})", entry.verb, entry.name, entry.id));
            let schemas = state.schemas.clone();
            entry.schemas = state.add_row(client, &self.actor, schemas, asked.target, row).await;
        }
        Ok(entry)
    }

    async fn end(
        &self,
        client: Option<&Client>,
        asked: &ActionRequest<'_>,
        entry: Option<UnfinishedEntry>,
        result: &TargetResult,
    ) -> Result<(), AuditError> {
        let mut state = self.state.lock().await;
        let audit = self.open(&mut state)?;
        let entry = entry.unwrap_or_else(|| audit.entry(asked));
        let schemas = audit.end(entry, result).await?;
        if let Some(client) = client.filter(|client| !client.is_closed()) {
            let row = ("result", format!("{}: {}", result.outcome.as_str(), result.detail));
            state.add_row(client, &self.actor, schemas, asked.target, row).await;
        }
        Ok(())
    }

    fn send_event(&self, kind: EventKind, severity: Severity, text: String, asked: &ActionRequest<'_>) {
        if let Some(send) = &self.send_event {
            send(ExternalEvent { kind, severity, text, subject: Some(asked.target.subject) });
        }
    }
}

fn logged(what: &str) -> impl Fn(AuditError) -> String {
    move |error| {
        tracing::error!("{what}: {error}");
        error.to_string()
    }
}

impl ActionRecord for AuditLog {
    type Entry = UnfinishedEntry;

    async fn asked(
        &self,
        client: Option<&Client>,
        asked: &ActionRequest<'_>,
    ) -> Result<UnfinishedEntry, String> {
        let ActionRequest { verb, target, statement, .. } = *asked;
        let verb = verb.as_str();
        tracing::info!("{verb} {} is requested: {statement}", target.name);
        let entry = self.begin(client, asked).await;
        let entry = entry.map_err(logged("not recorded, and therefore not done"))?;
        let text = format!("{} {} asked", verb.replace('_', " "), target.name);
        self.send_event(EventKind::ActionAsked, Severity::Info, text, asked);
        Ok(entry)
    }

    async fn write_result(
        &self,
        client: Option<&Client>,
        asked: &ActionRequest<'_>,
        entry: Option<UnfinishedEntry>,
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
        self.send_event(EventKind::ActionResult, severity, text, asked);
        tracing::info!("{} {name}: {word}, {detail}", verb.as_str());
        self.end(client, asked, entry, result).await.map_err(logged("its result is not recorded"))
    }

    async fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().await.notes)
    }
}

// The record in a database: the tables `locktop_audit` of locktop's schemas, for actions on sessions. The functions of the
// schema write their own rows for all other actions. The rows are in addition to the file: a failure to write them is
// reported, and the action is executed anyway. One row records the request and is committed before the signal; another row
// records the result.

/// Finds locktop's schemas, and whether this role may insert into their audit tables.
const FIND: &str = include_str!("../../../assets/sql/audit_tables.sql");
/// A locked audit table must not delay an action.
const HURRY: &str = "SET LOCAL lock_timeout = 300; SET LOCAL statement_timeout = 1000;";

#[derive(Debug, Deserialize)]
struct AuditSchema {
    schema: String,
    stranger: Option<String>,
    in_recovery: bool,
    may_insert: bool,
    role: String,
}

impl LogState {
    fn note(&mut self, note: &str) {
        let note = one_line(note).into_owned();
        if self.reported.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    /// Finds the schemas whose audit table this role may write.
    async fn find_tables(&mut self, client: &Client, owners: &TrustedOwners) {
        self.schemas.clear();
        // The answer is packed, so that it arrives as it is stored.
        let answer = packed("to_jsonb(q)");
        let values = [
            ("$answer", answer.as_str()),
            ("$schema_owner", &TrustedOwners::name("n.nspowner")),
            ("$trusts_schema", &owners.trusts("n.nspowner")),
            ("$trusts_table", &owners.trusts("a.relowner")),
        ];
        let sql = format!("{HURRY} {}", fill(&without_comments(FIND), &values));
        let rows = match send(client, Access::ReadOnly, &sql).await {
            Ok(rows) => rows,
            Err(error) => return self.note(&format!("locktop_audit was not found: {error}")),
        };
        for row in rows {
            let Ok(found) = serde_json::from_str::<AuditSchema>(&row) else { continue };
            let Ok(name) = SchemaName::new(&found.schema) else { continue };
            let table = format!("{}.locktop_audit", name.quoted());
            if found.in_recovery {
                return self.note("locktop_audit cannot be written on a standby");
            } else if let Some(stranger) = found.stranger {
                let owner = Owner { stranger: Some(stranger.as_str().into()), ..Owner::default() };
                self.note(&format!("not recorded: {}", owner.refusal(&table).unwrap_or_default()));
            } else if found.may_insert {
                self.schemas.push(Schema { name, trusted_owners: owners.clone() });
            } else {
                let role = escape_identifier(&found.role);
                let usage = format!("GRANT USAGE ON SCHEMA {} TO {role}", name.quoted());
                let grants = record_grants(&name, &role).join("; ");
                self.note(&format!("not recorded in {table}: the role needs {usage}; {grants}"));
            }
        }
    }

    /// Records the request for a session, or its result, and commits it. Other targets have functions that record themselves.
    /// Returns the schemas that have it.
    async fn add_row(
        &mut self,
        client: &Client,
        actor: &Actor,
        schemas: Vec<Schema>,
        target: &Target,
        (action, detail): (&str, String),
    ) -> Vec<Schema> {
        let TargetKind::Session(session) = &target.what else { return Vec::new() };
        let key = session.holds.and_then(|(tag, _)| match tag.advisory_key() {
            Some(LockKey::Bigint(key)) => Some(key),
            Some(LockKey::Pair(..)) | None => None,
        });
        let values = [
            text(action),
            note(&actor.to_string()),
            session.pid.to_string(),
            moment(Some(session.backend_start)),
            number(key),
            // A NUL ends a statement.
            note(&detail.replace('\0', "")),
        ];
        let mut done = Vec::new();
        for schema in schemas {
            let sql = format!(
                "{HURRY} {}; INSERT INTO {}.locktop_audit (action, actor, target_pid, target_start, lock_id, detail)
         VALUES ({})",
                schema.guard(),
                schema.quoted(),
                values.join(", "),
            );
            match send(client, Access::ReadWrite, &sql).await {
                Ok(_) => done.push(schema),
                Err(error) => {
                    self.note(&format!("not recorded in {}.locktop_audit: {error}", schema.quoted()));
                }
            }
        }
        done
    }
}

/// Identifies the cluster; `None` if the role cannot read it.
async fn system_identifier(client: &Client) -> Option<String> {
    let sql = format!("{HURRY} SELECT system_identifier FROM pg_control_system()");
    send(client, Access::ReadOnly, &sql).await.ok()?.into_iter().next()
}
