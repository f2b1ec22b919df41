use serde::Deserialize;
use tokio_postgres::Client;

use super::error::{RecoverError, RecoveryNeed};
use super::plan::{RecoveryPlan, Request};
use super::running::RunningExecution;
use crate::message::{Access, packed, send, text};
use crate::schema::Schema;
use crate::sql::{fill, without_comments};
use locktop_base::Timestamp;

const FIND: &str = include_str!("../../assets/sql/recovery/find.sql");
/// The executions that are running by the log.
const RUNNING: &str = include_str!("../../assets/sql/recovery/running.sql");

/// The first answer: the time, the role, and what the schema of this name is.
#[derive(Debug, Deserialize)]
struct ServerAnswer {
    taken_at: Timestamp,
    in_recovery: bool,
    role: String,
    found: SchemaFound,
    other_schemas: Vec<String>,
    printed_schemas: Vec<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SchemaFound {
    Absent,
    Foreign,
    Old,
    Ours,
}

/// A row, and the grace, which is the same in all rows.
#[derive(Debug, Deserialize)]
struct ExecutionRow {
    #[serde(flatten)]
    running: RunningExecution,
    grace_seconds: f64,
}

/// Reads what is running and makes a plan. Locks nothing, and changes nothing.
///
/// # Errors
/// If this is a standby, the schema does not exist or is not locktop's, the role lacks a privilege, or the server
/// refuses.
pub async fn plan(
    client: &Client,
    schema: impl Into<Schema>,
    request: &Request,
) -> Result<RecoveryPlan, RecoverError> {
    let schema = &schema.into();
    let answer = packed("to_jsonb(q)");
    let find = [("$name", text(schema.name.as_str())), ("$answer", answer.clone())];
    let rows = send(client, Access::ReadOnly, &fill(&without_comments(FIND), &find)).await;
    let rows = rows.map_err(|error| RecoverError::Server(error.to_string()))?;
    let place: ServerAnswer = parse(rows.first().map_or("", String::as_str))?;
    let ServerAnswer { taken_at, role, other_schemas: others, printed_schemas: printed, .. } = place;
    if place.in_recovery {
        return Err(RecoverError::Standby);
    }
    let name = schema.name.clone();
    match place.found {
        SchemaFound::Absent => return Err(RecoverError::NoSchema { schema: name, others, printed }),
        SchemaFound::Foreign => return Err(RecoverError::Foreign { schema: name, others, printed }),
        SchemaFound::Old => return Err(RecoverError::Old(name)),
        SchemaFound::Ours => {}
    }
    let quoted = schema.quoted();
    let read = async |sql: String| {
        let rows = send(client, Access::ReadOnly, &guarded(schema, &sql)).await;
        rows.map_err(|error| RecoverError::of(&error, &schema.name, &role, RecoveryNeed::Plan))
    };
    if let Some(name) = &request.task {
        let named = text(name);
        if read(format!("SELECT 1 FROM {quoted}.scheduled_tasks WHERE task_name = {named}")).await?.is_empty()
        {
            return Err(RecoverError::NoTask { schema: schema.name.clone(), name: name.clone() });
        }
    }
    let running = [("$schema", quoted.clone()), ("$answer", answer)];
    let rows = read(fill(&without_comments(RUNNING), &running)).await?;
    let rows = rows.iter().map(|row| parse::<ExecutionRow>(row)).collect::<Result<Vec<_>, _>>()?;
    let grace = if let Some(row) = rows.first() {
        row.grace_seconds
    } else {
        let grace = format!("SELECT extract(epoch FROM {quoted}.orphan_grace())::double precision");
        let rows = read(grace).await?;
        parse(rows.first().map_or("", String::as_str))?
    };
    let running: Vec<RunningExecution> = rows.into_iter().map(|row| row.running).collect();
    Ok(RecoveryPlan::of(schema.name.as_str(), taken_at, grace, &running, request))
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, RecoverError> {
    serde_json::from_str(text).map_err(|error| RecoverError::Unreadable(error.to_string()))
}

/// A statement that reads, calls or writes in the schema, after a check that fails if the schema is not to be trusted.
pub(super) fn guarded(schema: &Schema, sql: &str) -> String {
    format!("{};\n{sql}", schema.guard())
}
