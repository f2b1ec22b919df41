//! The record in a database: the tables `locktop_audit` of locktop's schemas, for actions on sessions. The functions of
//! the schema write their own rows for all other actions.
//!
//! The rows are in addition to the file: a failure to write them is reported, and the action is executed anyway. One
//! row records the request and is committed before the signal; another row records the result.

use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;
use tokio_postgres::Client;

use super::Entry;
use crate::action::Actor;
use crate::action::message::{Access, moment, note, number, packed, send, text};
use crate::model::lock_key::LockKey;
use crate::model::plan::{SessionTarget, Target, TargetKind, TargetResult};
use crate::model::table::Owner;
use crate::pg::trust::TrustedOwners;
use crate::schema::{Schema, SchemaName};
use crate::text::one_line;
use locktop_tasks::recovery::record_grants;
use locktop_tasks::sql::{fill, without_comments};

/// Finds locktop's schemas, and whether this role may insert into their audit tables.
const FIND: &str = include_str!("../../../assets/sql/audit_tables.sql");
/// A locked audit table must not delay an action.
const HURRY: &str = "SET LOCAL lock_timeout = 300; SET LOCAL statement_timeout = 1000;";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AuditTables {
    schemas: Vec<SchemaName>,
    owners: TrustedOwners,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AskedRows {
    schemas: Vec<Schema>,
}

#[derive(Debug, Deserialize)]
struct AuditSchema {
    schema: String,
    stranger: Option<String>,
    in_recovery: bool,
    may_insert: bool,
    role: String,
}

impl AuditTables {
    /// Also returns why something will not be recorded, in readable lines.
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

    /// Records the request for a session, and commits it. Other targets have functions that record themselves. Also returns
    /// why something was not recorded.
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
    /// Records the result in the schemas that have the request. Returns why something was not recorded.
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

/// The answer is packed, so that it arrives as it is stored.
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

/// Identifies the cluster; `None` if the role cannot read it.
pub(super) async fn system_identifier(client: &Client) -> Option<String> {
    let sql = format!("{HURRY} SELECT system_identifier FROM pg_control_system()");
    send(client, Access::ReadOnly, &sql).await.ok()?.into_iter().next()
}
