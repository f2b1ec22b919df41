//! The message that acts on a row of another system.
//!
//! The connection that acts looks up the tables, their owners and columns again. The transaction of the statement then
//! locks the tables by name and checks them again, including what their triggers run. The statement names all values seen
//! in the row, and changes nothing if any of them has changed.

use std::fmt::Write as _;
use std::sync::Arc;

use postgres_protocol::escape::escape_literal;
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::{Client, SimpleColumn, SimpleQueryRow};

use super::find::{FoundInstallation, found_in, statement};
use super::{Filled, statement_name, zone};
use crate::model::Text;
use crate::model::adapter::{ActionKind, ActionValue, ActionValues, Adapter, AdapterAction, Rehearsal};
use crate::model::lock_key::LockKey;
use crate::model::plan::AdapterTarget;
use crate::pg::jobs::tables::locked;
use crate::pg::sql;
use crate::pg::trust::{MARK, TrustedOwners, untrusted};
use crate::pg::{Scope, SectionError, each_row};
use locktop_tasks::sql::{fill, without_comments};
use pg_connect::message as words_of;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ActError(String);

fn refused<T>(why: impl Into<String>) -> Result<T, ActError> {
    Err(ActError(why.into()))
}

/// The statement that finds the installations of the adapter. It must be sent with a pinned search path: a connection
/// from a pooler has the search path of the database, where any role may have created an operator.
pub fn find_statement(owners: &TrustedOwners, adapter: &Arc<Adapter>) -> String {
    statement(owners, std::slice::from_ref(adapter))
}

/// The statements that act, for one transaction that writes. Each returned row was changed. `rows` is the answer to
/// [`find_statement`].
///
/// # Errors
/// If the installation no longer exists, must not be read, or its version lacks what the statement needs.
pub fn act_message(owners: &TrustedOwners, on: &AdapterTarget, rows: &[String]) -> Result<String, ActError> {
    let seen = &on.installation;
    let all = found_in(std::slice::from_ref(&seen.adapter), rows.iter());
    let found = all.iter().find(|found| found.oid() == on.oid && found.prefix == seen.prefix);
    let Some(found) = found else { return refused("its tables no longer exist") };
    if let Some(reason) = &found.refused {
        return refused(&**reason);
    }
    let Some(action) = on.action() else {
        return refused("its adapter has no statement for this");
    };
    if !found.has(&action.needs) {
        return refused("this version of it lacks a column that the statement needs");
    }
    message(owners, found, action, &on.values)
}

fn message(
    owners: &TrustedOwners,
    found: &FoundInstallation,
    action: &AdapterAction,
    values: &ActionValues,
) -> Result<String, ActError> {
    let mut sql = zone(found) + "\n";
    let mut guards = String::new();
    for key in action.sql.tables() {
        let Some(table) = found.tables.get(key) else {
            return refused("a table that it names does not exist");
        };
        let is_written = action.writes.contains(key);
        let mode = if is_written { "ROW EXCLUSIVE" } else { "ACCESS SHARE" };
        let _ = writeln!(sql, "LOCK TABLE {} IN {mode} MODE;", table.named().source());
        let [oid, schema, name] = table.named().literals();
        let _ = writeln!(guards, "{};", owners.table_guard(&oid, &schema, &name, is_written));
    }
    sql.push_str(&guards);
    let _ = writeln!(sql, "{};", owners.locked_guard());
    let oids: Vec<String> =
        action.writes.iter().filter_map(|key| Some(found.tables.get(key)?.oid.to_string())).collect();
    let keys =
        fill(&without_comments(sql::ADAPTERS_KEYS), &[("$oids", oids.join(", ").as_str()), ("$mark", MARK)]);
    let _ = writeln!(sql, "{keys};");
    // Some workers of the system take no lock.
    if let Some(key) = values.key.filter(|_| action.holds_key) {
        let held = "its advisory lock is held: a worker may be working on it";
        // A cast of a constant would be evaluated during planning, whichever session has the lock.
        let late = "pg_catalog.left(pg_catalog.clock_timestamp()::pg_catalog.text, 0)";
        let _ =
            writeln!(sql, "SELECT ('{MARK}{held}' || {late})::pg_catalog.int4 WHERE NOT {};", try_lock(key));
    }
    let Some(Filled { sql: statement, .. }) = Filled::of(found, &action.sql, |value| literal(values, value))
    else {
        let missing =
            action.sql.values().find(|value| !values.has(*value)).map_or("something", ActionValue::as_str);
        return refused(format!(
            "its row has no {missing}: the next run could not be distinguished from this one"
        ));
    };
    let _ = write!(sql, "{statement} RETURNING 'done'::pg_catalog.text");
    Ok(sql)
}

fn try_lock(key: LockKey) -> String {
    match key {
        LockKey::Bigint(key) => format!("pg_catalog.pg_try_advisory_xact_lock('{key}'::pg_catalog.int8)"),
        LockKey::Pair(class, object) => format!(
            "pg_catalog.pg_try_advisory_xact_lock('{class}'::pg_catalog.int4, '{object}'::pg_catalog.int4)"
        ),
    }
}

fn literal(values: &ActionValues, value: ActionValue) -> Option<String> {
    let time = |at: Option<crate::model::Timestamp>| {
        let text = at?.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
        Some(format!("'{text}'::pg_catalog.timestamptz"))
    };
    match value {
        ActionValue::Id => Some(format!("{}::pg_catalog.text", escape_literal(&values.id))),
        ActionValue::Worker | ActionValue::Owner => {
            values.who.as_deref().map(|who| format!("{}::pg_catalog.text", escape_literal(who)))
        }
        ActionValue::Attempt => values.attempt.map(|attempt| format!("'{attempt}'::pg_catalog.int8")),
        ActionValue::StartedAt | ActionValue::AcquiredAt => time(values.since),
        ActionValue::ExpiresAt => time(values.until),
    }
}

// Checks that the statements of actions can be parsed and planned for their tables. None of them runs: they are in one
// read-only transaction, whose tables are checked first, as before every action.

pub(super) async fn rehearsed(
    client: &Client,
    owners: &TrustedOwners,
    found: &FoundInstallation,
) -> Result<Vec<Rehearsal>, SectionError> {
    let mut all = Vec::new();
    if found.refused.is_some() {
        return Ok(all);
    }
    let each = ActionKind::ALL.iter().flat_map(|kind| found.adapter.actions_of(*kind));
    for (number, action) in each.filter(|(_, action)| found.has(&action.needs)) {
        let (kind, at) = (action.kind, None);
        let Some(statement) = Filled::of(found, &action.sql, |value| Some(unknown(value).to_owned())) else {
            let outcome = Err("a table that it names does not exist".into());
            all.push(Rehearsal { kind, number, outcome, at });
            continue;
        };
        let name = statement_name();
        let message = rehearsal(owners, found, action, (&name, &statement.sql));
        let (outcome, at) = match asked(client, Scope::Own, &message).await? {
            Ok(_) => (Ok(()), at),
            Err(unread) => {
                // A prepared statement survives a failed transaction.
                let _ = client.batch_execute(&format!("DEALLOCATE {name}")).await;
                (Err(unread.reason), unread.position.and_then(|at| statement.origin(&message, at)))
            }
        };
        all.push(Rehearsal { kind, number, outcome, at });
    }
    Ok(all)
}

fn unknown(value: ActionValue) -> &'static str {
    match value {
        ActionValue::Id | ActionValue::Worker | ActionValue::Owner => "NULL::pg_catalog.text",
        ActionValue::Attempt => "NULL::pg_catalog.int8",
        ActionValue::StartedAt | ActionValue::AcquiredAt | ActionValue::ExpiresAt => {
            "NULL::pg_catalog.timestamptz"
        }
    }
}

fn rehearsal(
    owners: &TrustedOwners,
    found: &FoundInstallation,
    action: &AdapterAction,
    (name, statement): (&str, &str),
) -> String {
    let mut sql = without_comments(sql::ADAPTERS_FRAME) + &zone(found);
    let tables: Vec<_> =
        action.sql.tables().into_iter().filter_map(|key| Some((key, found.tables.get(key)?))).collect();
    sql += &locked(&tables.iter().map(|(_, table)| table.named()).collect::<Vec<_>>());
    for (key, table) in &tables {
        let [oid, schema, name] = table.named().literals();
        let _ = write!(sql, "\n{};", owners.table_guard(&oid, &schema, &name, action.writes.contains(key)));
    }
    let oids = |is_meant: &dyn Fn(&Text) -> bool| {
        let those = tables.iter().filter(|(key, _)| is_meant(key));
        those.map(|(_, table)| table.oid.to_string()).collect::<Vec<_>>().join(", ")
    };
    let written = oids(&|key| action.writes.contains(key));
    let keys = fill(&without_comments(sql::ADAPTERS_KEYS), &[("$oids", written.as_str()), ("$mark", MARK)]);
    let all = oids(&|_| true);
    let named = fill(&without_comments(sql::ADAPTERS_NAMED), &[("$oids", all.as_str()), ("$mark", MARK)]);
    let statement = format!("{statement} RETURNING 'done'::pg_catalog.text");
    let _ = write!(
        sql,
        "\n{keys};\nPREPARE {name} AS\n{statement};\n{named};\nDEALLOCATE {name};\nEXPLAIN {statement}"
    );
    sql
}

/// The server's answer about a query, or why the query is rejected.
pub(super) type QueryAnswer<T> = Result<Result<T, Rejection>, SectionError>;

/// The columns of the last statement of a message, and the values of all columns named `sizes` or `QUERY PLAN`.
pub(super) async fn asked(client: &Client, scope: Scope, sql: &str) -> QueryAnswer<TriedRows> {
    match scope.alone(client, rows(client, sql)).await {
        Ok(rows) => Ok(Ok(rows)),
        Err(error) => match error.as_db_error() {
            Some(told) => {
                let position = match told.position() {
                    Some(ErrorPosition::Original(at)) => usize::try_from(*at).ok(),
                    _ => None,
                };
                Ok(Err(Rejection {
                    reason: untrusted(told).unwrap_or_else(|| words_of(&error)).into(),
                    position,
                }))
            }
            None => Err(error.into()),
        },
    }
}

/// Why a query is rejected, and the position of the error in the message, in characters from 1.
#[derive(Debug)]
pub(super) struct Rejection {
    pub(super) reason: Text,
    pub(super) position: Option<usize>,
}

#[derive(Debug)]
pub(super) struct TriedRows {
    pub(super) columns: Vec<String>,
    pub(super) values: Vec<String>,
}

async fn rows(client: &Client, sql: &str) -> Result<TriedRows, tokio_postgres::Error> {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    let is_wanted = |described: &[SimpleColumn]| {
        columns = described.iter().map(|column| column.name().to_owned()).collect();
        matches!(columns.first().map(String::as_str), Some("sizes" | "QUERY PLAN"))
    };
    let keep = |row: &SimpleQueryRow| {
        values.extend(row.try_get(0)?.map(str::to_owned));
        Ok(())
    };
    each_row(client, sql, is_wanted, keep).await?;
    Ok(TriedRows { columns, values })
}
