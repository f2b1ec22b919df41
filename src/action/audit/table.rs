//! The record in a database: the tables `locktop_audit` of our schemas, for what is done to sessions. The functions of the schema
//! write their own rows for everything else.
//!
//! These rows are beside the file, not in its place: what cannot be written there is said, and done all the same. A row of its own,
//! committed before the signal, says that it was asked; another one what came of it.

use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;
use tokio_postgres::Client;

use super::Entry;
use crate::action::Actor;
use crate::action::message::{Access, moment, note, number, packed, send, text};
use crate::model::lock_key::LockKey;
use crate::model::owner::Owner;
use crate::model::plan::{SessionTarget, Target, TargetKind, TargetResult};
use crate::pg::trust::TrustedOwners;
use crate::schema::{Schema, SchemaName};
use crate::text::one_line;
use locktop_tasks::recovery::record_grants;
use locktop_tasks::sql::{fill, without_comments};

/// The schemas of ours that there are, and whether this role may add to their record.
const FIND: &str = include_str!("../../../assets/sql/audit_tables.sql");
/// Waiting for a table that somebody has locked must not keep an action in an incident.
const HURRY: &str = "SET LOCAL lock_timeout = 300; SET LOCAL statement_timeout = 1000;";

/// The schemas of ours whose audit is written to, and who may own them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AuditTables {
    schemas: Vec<SchemaName>,
    owners: TrustedOwners,
}

/// The rows that say that something was asked: where they could be written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AskedRows {
    schemas: Vec<Schema>,
}

/// A schema of ours.
#[derive(Debug, Deserialize)]
struct AuditSchema {
    schema: String,
    /// Who owns it without being trusted.
    stranger: Option<String>,
    in_recovery: bool,
    may_insert: bool,
    role: String,
}

impl AuditTables {
    /// Looks for them. Also answers with why something will not be written, in lines for people.
    pub(super) async fn find(client: &Client, owners: &TrustedOwners) -> (Self, Vec<String>) {
        let rows = match send(client, Access::ReadOnly, &find(owners)).await {
            Ok(rows) => rows,
            Err(error) => return (Self::default(), vec![format!("locktop_audit was not found: {error}")]),
        };
        let (mut tables, mut notes) = (Self::default(), Vec::new());
        tables.owners = owners.clone();
        for row in rows {
            let Ok(found) = serde_json::from_str::<AuditSchema>(&row) else { continue };
            let Ok(schema) = SchemaName::new(&found.schema) else { continue };
            if found.in_recovery {
                return (tables, vec!["locktop_audit cannot be written on a standby".to_owned()]);
            } else if let Some(stranger) = found.stranger {
                let owner = Owner { stranger: Some(stranger.as_str().into()), ..Owner::default() };
                let why = owner.refusal(&format!("{}.locktop_audit", schema.quoted())).unwrap_or_default();
                notes.push(one_line(&format!("not recorded: {why}")).into_owned());
            } else if found.may_insert {
                tables.schemas.push(schema);
            } else {
                let (name, role) = (schema.quoted(), escape_identifier(&found.role));
                let grants = record_grants(&schema, &role).join("; ");
                let usage = format!("GRANT USAGE ON SCHEMA {name} TO {role}; {grants}");
                let note = format!("not recorded in {name}.locktop_audit: the role needs {usage}");
                notes.push(one_line(&note).into_owned());
            }
        }
        (tables, notes)
    }

    /// Says that something is asked of a session, and commits that. Other targets have functions that say so themselves. Also
    /// answers with why something was not written.
    pub(super) async fn asked(
        &self,
        client: &Client,
        actor: &Actor,
        entry: &Entry,
        target: &Target,
    ) -> (AskedRows, Vec<String>) {
        let (mut rows, mut notes) = (AskedRows::default(), Vec::new());
        let TargetKind::Session(session) = &target.what else { return (rows, notes) };
        let detail = format!("{} {} (record {})", entry.verb, entry.name, entry.id);
        for name in &self.schemas {
            let schema = Schema { name: name.clone(), trusted_owners: self.owners.clone() };
            match insert(client, &schema, actor, session, ("asked", &detail)).await {
                Ok(()) => rows.schemas.push(schema),
                Err(note) => notes.push(note),
            }
        }
        (rows, notes)
    }
}

impl AskedRows {
    /// Says what came of it, where it says that it was asked. Answers with why something was not written.
    pub(super) async fn result(
        &self,
        client: &Client,
        actor: &Actor,
        target: &Target,
        result: &TargetResult,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        let TargetKind::Session(session) = &target.what else { return notes };
        let detail = format!("{}: {}", result.outcome.as_str(), result.detail);
        for schema in &self.schemas {
            let row = ("result", detail.as_str());
            notes.extend(insert(client, schema, actor, session, row).await.err());
        }
        notes
    }
}

/// With an answer that arrives as it is stored.
fn find(owners: &TrustedOwners) -> String {
    let answer = packed("to_jsonb(q)");
    let values = [
        ("$answer", answer.as_str()),
        ("$schema_owner", &TrustedOwners::name("n.nspowner")),
        ("$trusts_schema", &owners.trusts("n.nspowner")),
        ("$trusts_table", &owners.trusts("a.relowner")),
    ];
    format!("{HURRY} {}", fill(&without_comments(FIND), &values))
}

async fn insert(
    client: &Client,
    schema: &Schema,
    actor: &Actor,
    session: &SessionTarget,
    (action, detail): (&str, &str),
) -> Result<(), String> {
    let key = session.holds.and_then(|(tag, _)| match tag.advisory_key() {
        Some(LockKey::Bigint(key)) => Some(key),
        Some(LockKey::Pair(..)) | None => None,
    });
    // A NUL ends a statement.
    let detail = detail.replace('\0', "");
    let sql = format!(
        "{HURRY} {}; INSERT INTO {}.locktop_audit (action, actor, target_pid, target_start, lock_id, detail)
         VALUES ({}, {}, {}, {}, {}, {})",
        schema.guard(),
        schema.quoted(),
        text(action),
        note(&actor.to_string()),
        session.pid,
        moment(Some(session.backend_start)),
        number(key),
        note(&detail),
    );
    let sent = send(client, Access::ReadWrite, &sql).await;
    let note = |error| format!("not recorded in {}.locktop_audit: {error}", schema.quoted());
    sent.map(drop).map_err(|error| one_line(&note(error)).into_owned())
}

/// What tells this cluster from every other one, where the role may see it.
pub(super) async fn system_identifier(client: &Client) -> Option<String> {
    let sql = format!("{HURRY} SELECT system_identifier FROM pg_control_system()");
    send(client, Access::ReadOnly, &sql).await.ok()?.into_iter().next()
}
