//! The audit record of the executor: the file, and also the tables in the database.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::Client;

use super::table::{AskedRows, AuditTables, system_identifier};
use super::{Audit, AuditError, Entry, ServerName, Unfinished};
use crate::action::Actor;
use crate::action::record::{Asked, Record};
use crate::model::finding::Subject;
use crate::model::plan::{Target, TargetResult};
use crate::pg::trust::TrustedOwners;

#[derive(Debug)]
pub struct AuditLog {
    directory: Option<PathBuf>,
    actor: Actor,
    trusted_owners: TrustedOwners,
    state: Mutex<LogState>,
}

#[derive(Debug)]
struct LogState {
    /// Opened on first use; a failed attempt is repeated on the next use.
    audit: Option<Audit>,
    server: ServerName,
    /// The command for which the tables were looked up.
    command: Option<u64>,
    tables: AuditTables,
    open: Vec<Open>,
    notes: Vec<String>,
    /// All notes so far, so that each is reported only once.
    said: BTreeSet<String>,
}

#[derive(Debug)]
struct Open {
    command: u64,
    name: String,
    subject: Subject,
    entry: Entry,
    rows: AskedRows,
}

impl AuditLog {
    /// Does not open anything yet. Without a directory ([`super::directory`]), no action can be requested.
    pub fn new(directory: Option<PathBuf>, actor: Actor, server: ServerName) -> Self {
        let state = LogState {
            audit: None,
            server,
            command: None,
            tables: AuditTables::default(),
            open: Vec::new(),
            notes: Vec::new(),
            said: BTreeSet::new(),
        };
        Self { directory, actor, trusted_owners: TrustedOwners::default(), state: Mutex::new(state) }
    }

    pub fn trusting(self, trusted_owners: TrustedOwners) -> Self {
        Self { trusted_owners, ..self }
    }

    /// Actions that were requested by processes that ended before the result, each reported once: [`Audit::unfinished`].
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

    fn open(&self, state: &mut MutexGuard<'_, LogState>) -> Result<Audit, AuditError> {
        if let Some(audit) = &state.audit {
            return Ok(audit.clone());
        }
        let directory = self.directory.as_ref().ok_or(AuditError::Nowhere)?;
        Ok(state.audit.insert(Audit::open(directory, &self.actor)?).clone())
    }

    async fn begin(&self, client: Option<&Client>, asked: &Asked<'_>) -> Result<(), AuditError> {
        let mut state = self.state.lock().await;
        let audit = self.open(&mut state)?;
        if let Some(client) = client
            && state.command != Some(asked.command.number)
        {
            // Once per command: the connection may be a different one, and the tables may have changed.
            state.command = Some(asked.command.number);
            if state.server.system_identifier.is_none() {
                state.server.system_identifier = system_identifier(client).await;
            }
            let (tables, notes) = AuditTables::find(client, &self.trusted_owners).await;
            state.tables = tables;
            state.note(notes);
        }
        let entry = audit.begin(&state.server, asked.command, asked.target, asked.statement).await?;
        let mut rows = AskedRows::default();
        if let Some(client) = client {
            let notes;
            (rows, notes) = state.tables.asked(client, &self.actor, &entry, asked.target).await;
            state.note(notes);
        }
        let Target { name, subject, .. } = asked.target.clone();
        state.open.push(Open { command: asked.command.number, name, subject, entry, rows });
        Ok(())
    }

    async fn end(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        result: &TargetResult,
    ) -> Result<(), AuditError> {
        let mut state = self.state.lock().await;
        let audit = self.open(&mut state)?;
        let target = asked.target;
        let is_this = |open: &Open| {
            open.command == asked.command.number && open.name == target.name && open.subject == target.subject
        };
        let Some(place) = state.open.iter().position(is_this) else {
            return audit.left(asked.command.verb, target, result).await;
        };
        let Open { entry, rows, .. } = state.open.remove(place);
        audit.end(entry, result).await?;
        if let Some(client) = client.filter(|client| !client.is_closed()) {
            let notes = rows.result(client, &self.actor, target, result).await;
            state.note(notes);
        }
        Ok(())
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

impl Record for AuditLog {
    async fn asked(&self, client: Option<&Client>, asked: &Asked<'_>) -> Result<(), String> {
        let Asked { command, target, statement } = *asked;
        tracing::info!("{} {} is requested: {statement}", command.verb.as_str(), target.name);
        self.begin(client, asked).await.map_err(|error| {
            let why = error.to_string();
            tracing::error!("not recorded, and therefore not done: {why}");
            why
        })
    }

    async fn told(
        &self,
        client: Option<&Client>,
        asked: &Asked<'_>,
        result: &TargetResult,
    ) -> Result<(), String> {
        let (verb, outcome) = (asked.command.verb.as_str(), result.outcome.as_str());
        tracing::info!("{verb} {}: {outcome}, {}", result.name, result.detail);
        self.end(client, asked, result).await.map_err(|error| {
            let why = error.to_string();
            tracing::error!("its result is not recorded: {why}");
            why
        })
    }

    async fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().await.notes)
    }
}
