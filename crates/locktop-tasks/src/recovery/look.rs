use serde::Deserialize;
use tokio_postgres::Client;

use super::error::RecoverError;
use super::grants::Need;
use super::plan::{RecoveryPlan, Request};
use super::running::Running;
use super::sql;
use crate::message::{Access, send};
use crate::schema::Schema;
use locktop_base::Timestamp;

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
    running: Running,
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
    let rows = send(client, Access::ReadOnly, &sql::look(schema)).await;
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
    let forbidden = |error| RecoverError::of(&error, &schema.name, &role, Need::Plan);
    if let Some(name) = &request.task {
        let found = send(client, Access::ReadOnly, &sql::has_task(schema, name)).await.map_err(forbidden)?;
        if found.is_empty() {
            return Err(RecoverError::NoTask { schema: schema.name.clone(), name: name.clone() });
        }
    }
    let rows = send(client, Access::ReadOnly, &sql::running(schema)).await.map_err(forbidden)?;
    let rows = rows.iter().map(|row| parse::<ExecutionRow>(row)).collect::<Result<Vec<_>, _>>()?;
    let grace = if let Some(row) = rows.first() {
        row.grace_seconds
    } else {
        let rows = send(client, Access::ReadOnly, &sql::grace(schema)).await.map_err(forbidden)?;
        parse(rows.first().map_or("", String::as_str))?
    };
    let running: Vec<Running> = rows.into_iter().map(|row| row.running).collect();
    Ok(RecoveryPlan::of(schema.name.as_str(), taken_at, grace, &running, request))
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, RecoverError> {
    serde_json::from_str(text).map_err(|error| RecoverError::Unreadable(error.to_string()))
}
