//! Copies the published tables of another schema into locktop's.
//!
//! It is one transaction: the tables are locked against writes, their owners are checked under that lock, running work is
//! refused, and what is new is copied. The source tables are not changed. No record of the copied rows is kept: a row is
//! recognized by its content (name and time), so that a second run copies nothing twice.
//!
//! Work that is enabled in both places would run twice. So tasks are copied as disabled, and pending queue items remain
//! there, unless the caller states that no worker uses the old tables any more.

mod column;
mod copy;
mod notes;
mod running;
mod source;
mod tables;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::change::{claim, refuse};
use super::error::SchemaError;
use super::place::Schema;
use super::rights::{Need, explained};
use super::script::LATEST;
use super::state::{Found, State, look};
use copy::Copy;
use locktop_locks::SchemaName;
use source::Source;

/// In addition to the settings of every change. Copying may take a while. A policy must cause an error, not hide rows.
/// Times without a zone mean the same as in the poll.
const SETTINGS: &str =
    "SET LOCAL statement_timeout = '10min'; SET LOCAL row_security = off; SET LOCAL TimeZone TO DEFAULT";

/// Options for adopting published tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopt {
    /// The schema of the published tables.
    pub source: SchemaName,
    /// No worker uses them any more: tasks that are enabled there are enabled here, and pending items are taken.
    pub enable: bool,
    /// Do everything, report it, and roll it back. Sequences are not advanced either.
    pub dry_run: bool,
}

/// What was adopted, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adopted {
    /// By table, in the order in which they were copied.
    pub tables: Vec<Taken>,
    /// How many tasks are enabled there and not here.
    pub disabled: i64,
    /// How many items were left there because they are pending.
    pub open: i64,
}

impl Adopted {
    /// Whether anything here has changed.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.tables.iter().any(|taken| taken.rows > 0 || taken.enabled > 0)
    }
}

/// What was taken from one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The table's name, there and here.
    pub table: &'static str,
    /// Rows that were copied.
    pub rows: i64,
    /// How many tasks that were already here were enabled.
    pub enabled: i64,
    /// How many rows were not taken, for the reasons in `notes`: they are only there.
    pub skipped: i64,
    /// Notes on rows and columns that were not copied unchanged, with the reason: each a part of a sentence.
    pub notes: Vec<String>,
}

/// Copies what is new in the published tables of a schema into locktop's.
///
/// # Errors
/// If locktop's schema does not exist, is not the latest version, was changed or is not to be trusted; if the other one
/// is locktop's own, has none of the tables, or has tables that are not as published or belong to an owner that is not
/// trusted; if the tables are in use; if a lock is not granted, or the server refuses. Nothing is changed then.
pub async fn adopt(client: &mut Client, place: &Schema, asked: &Adopt) -> Result<Adopted, SchemaError> {
    let done = run(client, place, asked).await;
    explained(client, &place.name, Need::Own, done).await
}

async fn run(client: &mut Client, place: &Schema, asked: &Adopt) -> Result<Adopted, SchemaError> {
    let builder = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).read_only(false);
    let transaction = builder.start().await?;
    claim(&transaction, &place.name).await?;
    transaction.batch_execute(SETTINGS).await?;
    ready(&transaction, place).await?;
    let source = Source::find(&transaction, &asked.source).await?;
    source.lock(&transaction, &place.trusted_owners).await?;
    running::refuse(&transaction, place, &source, asked.enable).await?;
    let adopted = copied(&transaction, place, &source, asked).await?;
    if asked.dry_run {
        transaction.rollback().await?;
    } else {
        if adopted.is_change() {
            record(&transaction, place, &asked.source, &adopted).await?;
        }
        transaction.commit().await?;
    }
    Ok(adopted)
}

/// An error unless the schema exists, is locktop's own, is the latest version and is unchanged.
async fn ready(transaction: &Transaction<'_>, place: &Schema) -> Result<(), SchemaError> {
    let schema = &place.name;
    match look(transaction, place).await? {
        State::Absent => Err(SchemaError::Missing(schema.clone())),
        State::Foreign => Err(SchemaError::Foreign(schema.clone())),
        State::Installed { version, .. } if version > LATEST => {
            Err(SchemaError::Newer { schema: schema.clone(), found: version, known: LATEST })
        }
        State::Installed { version, .. } if version < LATEST => {
            Err(SchemaError::Old { schema: schema.clone(), found: version })
        }
        State::Installed { objects, .. } => {
            let odd = [Found::Changed, Found::Missing];
            refuse(schema, &objects, &odd, "changed since the installation")
        }
    }
}

async fn copied(
    transaction: &Transaction<'_>,
    place: &Schema,
    source: &Source,
    asked: &Adopt,
) -> Result<Adopted, SchemaError> {
    let mut adopted = Adopted::default();
    let copy = Copy { transaction, place, source, asked };
    if let Some(tasks) = &source.tasks {
        let (taken, disabled) = copy.tasks(tasks).await?;
        adopted.tables.push(taken);
        adopted.disabled = disabled;
        if let Some(log) = &source.log {
            adopted.tables.push(copy.executions(tasks, log).await?);
        }
    } else if source.log.is_some() {
        let notes = vec!["not copied: its schema has no scheduled_tasks".to_owned()];
        adopted.tables.push(Taken { table: tables::LOG.name, rows: 0, enabled: 0, skipped: 0, notes });
    }
    if let Some(queue) = &source.queue {
        let (taken, open) = copy.items(queue).await?;
        adopted.tables.push(taken);
        adopted.open = open;
    }
    Ok(adopted)
}

async fn record(
    transaction: &Transaction<'_>,
    place: &Schema,
    source: &SchemaName,
    adopted: &Adopted,
) -> Result<(), SchemaError> {
    let rows: Vec<String> =
        adopted.tables.iter().map(|taken| format!("{} rows of {}", taken.rows, taken.table)).collect();
    let detail = format!("from the schema {}: {}", source.quoted(), rows.join(", "));
    let sql = format!(
        "INSERT INTO {}.locktop_audit (action, actor, detail) VALUES ('adopted', session_user, $1)",
        place.quoted()
    );
    transaction.query_typed(&sql, &[(&detail, Type::TEXT)]).await?;
    Ok(())
}
