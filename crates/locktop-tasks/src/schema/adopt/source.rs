//! The published tables: which exist, their owners, and a lock that keeps them from changing meanwhile.

use postgres_protocol::escape::escape_identifier;
use serde::Deserialize;
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use super::super::error::SchemaError;
use super::column::{Column, ColumnKind, expression, has};
use super::tables::{LOG, Published, QUEUE, TASKS};
use crate::sql::without_comments;
use crate::trust::{TrustedOwners, untrusted};
use locktop_locks::SchemaName;

const PLACE: &str = include_str!("../../../assets/sql/adopt/place.sql");
const FIND: &str = include_str!("../../../assets/sql/adopt/find.sql");

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Table {
    oid: u32,
    name: String,
    /// Why it is not taken; `None` if it is.
    odd: Option<String>,
    pub(super) columns: Vec<Column>,
}

impl Table {
    pub(super) fn column(&self, alias: &str, name: &str, kind: ColumnKind) -> String {
        expression(&self.columns, alias, name, kind)
    }
}

/// The published tables of a schema; each is `None` if it does not exist.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) schema: SchemaName,
    /// The connected role, for the GRANT statements of an error.
    role: String,
    pub(super) tasks: Option<Table>,
    pub(super) log: Option<Table>,
    pub(super) queue: Option<Table>,
}

impl Source {
    /// Searches the catalogs only.
    pub(super) async fn find(
        transaction: &Transaction<'_>,
        schema: &SchemaName,
    ) -> Result<Self, SchemaError> {
        let name = &[(&schema.as_str() as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT)];
        let not = |reason: &str| SchemaError::Unadoptable {
            source_schema: schema.clone(),
            reason: reason.to_owned(),
        };
        let rows = transaction.query_typed(&without_comments(PLACE), name).await?;
        let Some(row) = rows.first() else { return Err(not("the server does not report it")) };
        if !row.try_get::<_, bool>(0)? {
            return Err(not("no such schema: the name is case-sensitive, without quotes"));
        }
        if row.try_get::<_, bool>(1)? {
            return Err(not("it is locktop's own schema, not one of published tables"));
        }
        let role: String = row.try_get(2)?;
        let mut found = Vec::new();
        for row in transaction.query_typed(&without_comments(FIND), name).await? {
            let table: Table = serde_json::from_str(row.try_get(0)?)
                .map_err(|error| SchemaError::Server(format!("a table cannot be read: {error}")))?;
            found.push(table);
        }
        let mut take = |published: &Published| take(&mut found, published, schema);
        let (tasks, log, queue) = (take(&TASKS)?, take(&LOG)?, take(&QUEUE)?);
        if tasks.is_none() && queue.is_none() {
            return Err(not("it has neither scheduled_tasks nor task_queue"));
        }
        Ok(Self { schema: schema.clone(), role, tasks, log, queue })
    }

    pub(super) fn name(&self, table: &Table) -> String {
        format!("{}.{}", self.schema.quoted(), escape_identifier(&table.name))
    }

    /// Locks the tables against writes until the end of the transaction, and ensures that they are those that were found,
    /// with trusted owners. Nothing in them is read before, and from then on they cannot be replaced.
    pub(super) async fn lock(
        &self,
        transaction: &Transaction<'_>,
        owners: &TrustedOwners,
    ) -> Result<(), SchemaError> {
        for table in [&self.tasks, &self.log, &self.queue].into_iter().flatten() {
            let lock = format!("LOCK TABLE ONLY {} IN SHARE MODE", self.name(table));
            transaction.batch_execute(&lock).await.map_err(|error| self.refused(table, error.into()))?;
            let (schema, name) =
                (self.schema.literal(), postgres_protocol::escape::escape_literal(&table.name));
            let guard = owners.table_guard(&table.oid.to_string(), &schema, &name, false);
            transaction.batch_execute(&guard).await.map_err(|error| {
                match error.as_db_error().and_then(untrusted) {
                    Some(reason) => SchemaError::Untrusted { schema: self.schema.clone(), reason },
                    None => error.into(),
                }
            })?;
        }
        Ok(())
    }

    /// The conflicting sessions, or the missing privilege: to lock a table against writes requires a privilege to change it.
    fn refused(&self, table: &Table, error: SchemaError) -> SchemaError {
        match error {
            SchemaError::Locked(_) => SchemaError::Locked(format!(
                "a transaction is writing to {}, or has locked it; run this again when that has ended",
                self.name(table)
            )),
            SchemaError::Forbidden { message, .. } => {
                let (schema, role) = (self.schema.quoted(), escape_identifier(&self.role));
                let needs = format!(
                    "GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT SELECT, UPDATE ON {} TO {role}",
                    self.name(table)
                );
                SchemaError::Forbidden { message, needs }
            }
            error => error,
        }
    }
}

/// The table of this name, if it exists; an error if it is not as published.
fn take(
    found: &mut Vec<Table>,
    published: &Published,
    schema: &SchemaName,
) -> Result<Option<Table>, SchemaError> {
    let not = |reason: String| Err(SchemaError::Unadoptable { source_schema: schema.clone(), reason });
    let Some(at) = found.iter().position(|table| table.name == published.name) else { return Ok(None) };
    let table = found.swap_remove(at);
    if let Some(odd) = &table.odd {
        return not(format!("{} {odd}: only plain tables can be adopted", published.name));
    }
    for (name, kind) in published.needed {
        if !has(&table.columns, name, *kind) {
            return not(format!(
                "{} has no column {name} of type {}, unlike the published table",
                published.name,
                kind.shown()
            ));
        }
    }
    for (name, kind) in published.known.iter().filter(|(name, _)| published.strict.contains(name)) {
        let column = table.columns.iter().find(|column| column.name == *name);
        if let Some(column) = column.filter(|_| !has(&table.columns, name, *kind)) {
            return not(format!(
                "{}.{name} has the type {}, not {}: its values cannot be converted",
                published.name,
                column.shown,
                kind.shown()
            ));
        }
    }
    Ok(Some(table))
}
