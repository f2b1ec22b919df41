//! The record in a database: the tables `locktop_audit` of locktop's schemas, for actions on sessions. The functions of
//! the schema write their own rows for all other actions.
//!
//! The rows are in addition to the file: a failure to write them is reported, and the action is executed anyway. One
//! row records the request and is committed before the signal; another row records the result.

use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;
use tokio_postgres::Client;

use crate::action::Actor;
use crate::action::message::{Access, moment, note, number, packed, send, text};
use crate::model::lock_key::LockKey;
use crate::model::plan::{SessionTarget, Target, TargetKind};
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

#[derive(Debug, Deserialize)]
struct AuditSchema {
    schema: String,
    stranger: Option<String>,
    in_recovery: bool,
    may_insert: bool,
    role: String,
}

/// The schemas whose audit table this role may write, and why something will not be recorded, in readable lines.
pub(super) async fn find(client: &Client, owners: &TrustedOwners) -> (Vec<Schema>, Vec<String>) {
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
        Err(error) => return (Vec::new(), vec![format!("locktop_audit was not found: {error}")]),
    };
    let (mut schemas, mut notes) = (Vec::new(), Vec::new());
    for row in rows {
        let Ok(found) = serde_json::from_str::<AuditSchema>(&row) else { continue };
        let Ok(name) = SchemaName::new(&found.schema) else { continue };
        let table = format!("{}.locktop_audit", name.quoted());
        let note = if found.in_recovery {
            return (schemas, vec!["locktop_audit cannot be written on a standby".to_owned()]);
        } else if let Some(stranger) = found.stranger {
            let owner = Owner { stranger: Some(stranger.as_str().into()), ..Owner::default() };
            format!("not recorded: {}", owner.refusal(&table).unwrap_or_default())
        } else if found.may_insert {
            schemas.push(Schema { name, trusted_owners: owners.clone() });
            continue;
        } else {
            let role = escape_identifier(&found.role);
            let usage = format!("GRANT USAGE ON SCHEMA {} TO {role}", name.quoted());
            let grants = record_grants(&name, &role).join("; ");
            format!("not recorded in {table}: the role needs {usage}; {grants}")
        };
        notes.push(one_line(&note).into_owned());
    }
    (schemas, notes)
}

/// Records the request for a session, or its result, and commits it. Other targets have functions that record themselves.
/// Returns the schemas that have it, and why something was not recorded.
pub(super) async fn add(
    client: &Client,
    actor: &Actor,
    schemas: &[Schema],
    target: &Target,
    row: (&str, String),
) -> (Vec<Schema>, Vec<String>) {
    let (mut done, mut notes) = (Vec::new(), Vec::new());
    let TargetKind::Session(session) = &target.what else { return (done, notes) };
    for schema in schemas {
        match insert(client, schema, actor, session, (row.0, &row.1)).await {
            Ok(()) => done.push(schema.clone()),
            Err(note) => notes.push(note),
        }
    }
    (done, notes)
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
